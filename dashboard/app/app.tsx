import { useEffect, useRef } from "preact/hooks";
import { route } from "../data/route.ts";
import { signedIn } from "../data/session.ts";
import { ConfirmDialog } from "../parts/confirm.tsx";
import { SaidLine } from "../parts/said.tsx";
import { Screen } from "../screens/screen.tsx";
import { Banner } from "./banner.tsx";
import { HelpDialog } from "./keys.tsx";
import { SignIn } from "./sign-in.tsx";
import { Top } from "./top.tsx";

/** Whoever follows a link is taken to the top of what it leads to, and so is a screen reader. */
const useFocusOnMove = () => {
  const main = useRef<HTMLElement>(null);
  const place = route.value.path.join("/");
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return;
    const [a, b] = [before.current.split("/"), place.split("/")];
    before.current = place;
    // another tab of the same thing
    if (a[0] === b[0] && a[1] === b[1] && a.length > 1 && b.length > 1) return;
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [place]);
  return main;
};

export const App = () => {
  const main = useFocusOnMove();
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <Top />
      <Banner />
      {signedIn.value ? (
        <main id="main" tabIndex={-1} ref={main}>
          <Screen />
        </main>
      ) : (
        <SignIn />
      )}
      <SaidLine />
      <ConfirmDialog />
      <HelpDialog />
    </>
  );
};
