import { render } from "preact";
import { App } from "./app/app.tsx";
import { startKeys } from "./app/keys.tsx";
import { startTheme } from "./data/theme.ts";
import { startClock } from "./data/clock.ts";
import { goLive } from "./data/live.ts";
import { begin } from "./data/session.ts";

startTheme();
startClock();
startKeys();
const signedIn = begin();
render(<App />, document.getElementById("app")!);
await signedIn;
void goLive();
