import { useEffect, useRef } from "preact/hooks";
import type { Output } from "../data/logs.ts";
import { Empty, Problem } from "./blocks.tsx";

/** Output that grows: the end stays in sight while one is there, and stays where one is when one has scrolled up. */
export const LogView = ({ label, output }: { label: string; output: Output }) => {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [output.text]);
  if (output.error !== undefined) return <Problem error={output.error} />;
  if (output.text === "")
    return (
      <Empty>{output.state === "ended" ? "Nothing was written." : "Nothing yet; what comes is shown here."}</Empty>
    );
  return (
    <div
      ref={box}
      class="log"
      role="log"
      aria-live="off"
      aria-label={label}
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
    >
      {output.cut && <p class="dim">… only the end is shown; slipway logs has all of it</p>}
      <pre>{output.text}</pre>
    </div>
  );
};
