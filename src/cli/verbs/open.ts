import { hostname, userInfo } from "node:os";
import { Option } from "commander";
import { ROLES, type Role } from "../../api/caller.ts";
import { SlipwayError } from "../../errors.ts";
import { findBrowser, startBrowser, writeRedirect } from "../browser.ts";
import type { Context } from "../context.ts";
import { localAddress, localUrl, tunnelOf, tunnelPort, tunnelUrl, urlBelow } from "../page-address.ts";
import { parseWhole } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

interface OpenOptions {
  readonly print?: boolean;
  readonly role?: Role;
  readonly port?: string;
  readonly base?: string;
}

const SECONDS = "within 60 seconds; it works once";

/** The server's socket is on another machine than the person's screen: ssh brings it there. */
const throughSsh = async (context: Context, role: Role | undefined, port: number | undefined): Promise<void> => {
  const endpoint = await context.client.endpoint();
  const isHere = endpoint.host === hostname();
  const tunnel = tunnelOf({
    socket: endpoint.socket,
    port: port ?? tunnelPort(endpoint.socket),
    user: userInfo().username,
    host: endpoint.host,
    connection: isHere ? process.env["SSH_CONNECTION"] : undefined,
  });
  const { code, expires } = await context.client.pageCode({ role });
  const url = tunnelUrl(tunnel, code);
  context.note(
    `Type the first line on your own machine and leave it running; open the second there ${SECONDS}. \`${context.program} open\` gives another.`,
  );
  context.answer({ url, expires, ssh: tunnel.command, port: null, opened: false }, () => `${tunnel.command}\n${url}`);
};

const here = async (context: Context, { print, role, base }: OpenOptions, wanted: number): Promise<void> => {
  const { code, expires, port } = await context.client.pageCode({ role, listen: true, port: wanted });
  if (port === null) throw new SlipwayError("internal", { detail: "the server opened no port for browsers" });
  if (wanted !== 0 && port !== wanted) context.note(`the page is open at port ${port} already, and stays there`);
  const url = base === undefined ? localUrl(port, code) : urlBelow(base, port, code);
  const about = { url, expires, ssh: null, port };
  const browser = print === true || context.json || base !== undefined ? undefined : await findBrowser(process.env);
  if (browser !== undefined && (await startBrowser(browser, await writeRedirect(context.home, url)))) {
    context.answer({ ...about, opened: true }, () => `the page opens in your browser: ${localAddress(port)}`);
    context.note(`if it does not, \`${context.program} open --print\` prints an address`);
    return;
  }
  if (print !== true) context.note(`open this on this machine ${SECONDS}`);
  context.answer({ ...about, opened: false }, () => url);
};

export const define: Define = (command, { act }) =>
  void command
    .option("--print", "print the address, and start no browser")
    .addOption(new Option("--role <role>", "what the page may do (default: all that you may)").choices([...ROLES]))
    .option("--port <port>", "the port of 127.0.0.1 (default: any free one); over ssh the one on your own machine")
    .option("--base <url>", "print an address below this one, which leads to the port: {port} stands for it")
    .description(
      "Open the server's page in a browser. The address holds a code that signs you in once, within 60 seconds. Over ssh it prints the line that brings the page to your own machine, and the address there. It needs a server that runs.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway open",
        "slipway open --role read --print",
        "slipway open --base https://hub.example.org/user/me/proxy/{port}/",
      ]),
    )
    .action(
      act(async (context, _args, command) => {
        const options = command.opts<OpenOptions>();
        const port = options.port === undefined ? undefined : parseWhole("--port", options.port, 1, 65_535);
        if (options.base !== undefined && !/^https?:\/\/[^\s"<>#]+$/.test(options.base))
          throw new SlipwayError("usage", { detail: "--base takes an address that begins with https:// or http://" });
        const endpoint = await context.client.endpoint();
        if (endpoint.socket === "")
          throw new SlipwayError("usage", {
            detail: `this server is somebody else's: sign in at https://${endpoint.addresses[0] ?? endpoint.host}:${endpoint.port}/ with your token`,
          });
        const isFar = endpoint.host !== hostname() || (process.env["SSH_CONNECTION"] ?? "") !== "";
        if (isFar && options.base === undefined) await throughSsh(context, options.role, port);
        else await here(context, options, port ?? 0);
      }),
    );
