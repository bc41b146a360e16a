import { expect, it } from "vitest";
import { captureEnvironment, isExported, MINIMAL } from "../../../src/config/environment.ts";

const env = {
  PATH: "/bin",
  HOME: "/home/u",
  FOO: "bar",
  EMPTY: "",
  "BASH_FUNC_module%%": "() { :; }",
  SSH_CONNECTION: "x",
  DISPLAY: ":0",
  TMPDIR: "/tmp",
  SLURM_JOB_ID: "1",
  PBS_JOBID: "1",
  OAR_JOB_ID: "1",
  JOB_ID: "1",
  SLIPWAY_TASK: "1.1",
  DBUS_SESSION_BUS_ADDRESS: "x",
  XDG_RUNTIME_DIR: "/run",
  _: "/bin/x",
  OLDPWD: "/",
  SHLVL: "3",
  BROKEN: "a\uFFFDb",
  MISSING: undefined,
};

it("all leaves out what belongs to the session, and what cannot be passed on unchanged", () => {
  const { environment, dropped } = captureEnvironment(env);
  expect(environment).toEqual({
    PATH: "/bin",
    HOME: "/home/u",
    FOO: "bar",
    EMPTY: "",
    "BASH_FUNC_module%%": "() { :; }",
  });
  expect(dropped).toEqual(["BROKEN"]);
  expect(captureEnvironment(env, "all")).toEqual(captureEnvironment(env));
});

it("none keeps what programs need to start", () => {
  expect(captureEnvironment(env, "none").environment).toEqual({ PATH: "/bin", HOME: "/home/u" });
  expect(MINIMAL.every(isExported)).toBe(true);
});

it("names are taken as they are, also those that all leaves out", () => {
  expect(captureEnvironment(env, "FOO, SLURM_JOB_ID,NOT_SET").environment).toEqual({ FOO: "bar", SLURM_JOB_ID: "1" });
  expect(captureEnvironment(env, ["FOO", "BROKEN"])).toEqual({ environment: { FOO: "bar" }, dropped: ["BROKEN"] });
});

it.each(["", "FOO,", "FOO=1", "all,FOO", "none,FOO"])("refuses %j", (option) => {
  expect(() => captureEnvironment(env, option)).toThrow(/--export/);
});
