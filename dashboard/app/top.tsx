import { link, overview } from "../data/live.ts";
import { route, to } from "../data/route.ts";
import { role } from "../data/session.ts";
import { openHelp } from "./keys.tsx";
import { PLACES } from "./places.ts";
import { nextTheme, theme } from "../data/theme.ts";

/** The line at the top of every screen: where we are, where we can go, and whether the server is there. */

const LINKS = { connecting: "connecting", live: "live", polling: "live", away: "away" } as const;
const SIGNS = { auto: "◐", light: "☀", dark: "☾" } as const;

const Mark = () => (
  <svg viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="7" fill="#0b6b7b" />
    <path d="M5 11.5 27 8v4.2L5 15.7z" fill="#fff" />
    <path d="M5 17.6 27 14v4.2L5 21.8z" fill="#fff" fill-opacity=".65" />
    <path d="M5 23.7 27 20v4.2L5 27.9z" fill="#fff" fill-opacity=".35" />
  </svg>
);

export const Top = () => {
  const here = route.value.path[0] ?? "";
  const server = overview.value?.server;
  return (
    <header class="top">
      <a class="brand" href={to()} aria-label="Slipway: overview">
        <Mark />
        Slipway
      </a>
      <nav class="nav" aria-label="Main">
        {PLACES.filter(({ path }) => path !== "submit" || role.value !== "read").map(({ path, title }) => (
          <a key={path} href={path === "" ? to() : to(path)} aria-current={here === path ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <div class="top-end">
        {server !== undefined && (
          <span class="host" title={`server ${server.version}, process ${server.pid}, home ${server.home}`}>
            {server.host}
          </span>
        )}
        <span
          class="link-state"
          data-link={link.value}
          title={link.value === "polling" ? "a proxy keeps the stream back: asked again and again instead" : undefined}
        >
          {LINKS[link.value]}
        </span>
        <button type="button" class="button bare" onClick={nextTheme} aria-label={`Theme: ${theme.value}. Change it`}>
          <span aria-hidden="true">{SIGNS[theme.value]}</span>
        </button>
        <button type="button" class="button bare" onClick={openHelp} aria-label="Keys and help">
          <span aria-hidden="true">?</span>
        </button>
      </div>
    </header>
  );
};
