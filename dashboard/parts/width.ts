import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** The size of an element in CSS pixels, as it changes. */
export const useSize = (element: RefObject<Element | null>): { readonly width: number; readonly height: number } => {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const found = element.current;
    if (found === null) return;
    const look = (): void => setSize({ width: found.clientWidth, height: found.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(found);
    return () => observer.disconnect();
  }, [element]);
  return size;
};
