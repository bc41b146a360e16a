import { describe, expect, it } from "vitest";
import { putBack, setAside } from "../../src/extra-authorities.ts";

describe("NODE_EXTRA_CA_CERTS", () => {
  it("is set aside for the start of a process of ours, which puts it back for what it starts", () => {
    const before = { PATH: "/bin", NODE_EXTRA_CA_CERTS: "/etc/ca.pem" };
    const env = setAside(before);
    expect(env).toEqual({ PATH: "/bin", SLIPWAY_NODE_EXTRA_CA_CERTS: "/etc/ca.pem" });
    expect(before.NODE_EXTRA_CA_CERTS).toBe("/etc/ca.pem");
    putBack(env);
    expect(env).toEqual(before);
  });

  it("is not made up where there is none", () => {
    const env = setAside({ PATH: "/bin" });
    putBack(env);
    expect(env).toEqual({ PATH: "/bin" });
  });
});
