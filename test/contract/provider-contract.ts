import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Provider } from "../../src/providers/provider.ts";

/**
 * What every provider promises. A driver of another workload manager passes this suite unchanged; what it cannot do is
 * named in `skip` with the reason.
 */
export interface ProviderUnderTest {
  readonly name: string;
  create(): Promise<Provider>;
  readonly skip?: Readonly<Record<string, string>>;
}

/** Until a job is in one of these states; the manager needs its time. */
const until = async (provider: Provider, id: string, states: readonly string[]): Promise<string> => {
  for (;;) {
    const state = (await provider.poll([id])).get(id)?.state ?? "missing";
    if (states.includes(state)) return state;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

export const providerContract = ({ name, create, skip = {} }: ProviderUnderTest): void => {
  const promise = (title: string, test: () => Promise<void>): void => {
    const reason = skip[title];
    it.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, test);
  };

  describe(`provider contract: ${name}`, () => {
    let provider: Provider;
    let directory: string;
    let jobs = 0;
    const prefix = `slipway-contract-${process.pid}`;
    const submit = async (script: string): Promise<{ name: string; nativeId: string }> => {
      jobs += 1;
      const job = { name: `${prefix}-${jobs}`, directory, command: ["/bin/sh", "-c", script] };
      return { name: job.name, ...(await provider.submit(job)) };
    };
    beforeAll(async () => {
      provider = await create();
      directory = await mkdtemp(join(tmpdir(), "slw-"));
    });
    afterAll(async () => {
      const left = await provider.list(prefix);
      await provider.cancel(left.map(({ nativeId }) => nativeId));
      for (const { nativeId } of left) await until(provider, nativeId, ["ended"]);
      await rm(directory, { recursive: true, force: true });
    });

    promise("describes the largest node it could offer", async () => {
      const { version, largest } = await provider.describe();
      expect(version).not.toBe("");
      expect(largest["cpus"]).toBeGreaterThan(0);
    });

    promise("runs a job to its end, and says when it has ended", async () => {
      const gate = join(directory, "gate");
      const { nativeId } = await submit(`until [ -e ${gate} ]; do sleep 0.02; done`);
      expect(await until(provider, nativeId, ["active", "ended"])).toBe("active");
      await writeFile(gate, "");
      await until(provider, nativeId, ["ended"]);
    });

    promise("answers about many jobs at once, also about those it never had", async () => {
      const { nativeId } = await submit("sleep 1000");
      const answers = await provider.poll([nativeId, "999999999:1", nativeId]);
      expect(answers.get(nativeId)?.state).toMatch(/queued|active/);
      expect(answers.get("999999999:1")?.state).toBe("ended");
      await provider.cancel([nativeId]);
    });

    promise("finds living jobs by the beginning of their name, and no others", async () => {
      const { name: job, nativeId } = await submit("sleep 1000");
      expect(await provider.list(prefix)).toContainEqual({ name: job, nativeId });
      expect(await provider.list(`${prefix}-no-such-job`)).toEqual([]);
      await provider.cancel([nativeId]);
      await until(provider, nativeId, ["ended"]);
      expect((await provider.list(prefix)).map(({ nativeId: id }) => id)).not.toContain(nativeId);
    });

    promise("cancels; cancelling what has ended, or what never was, is no error", async () => {
      const { nativeId } = await submit("sleep 1000");
      await provider.cancel([nativeId, "999999999:1"]);
      await until(provider, nativeId, ["ended"]);
      await provider.cancel([nativeId]);
    });

    promise("answers a driver that did not submit the job: a successor adopts it", async () => {
      const { nativeId } = await submit("sleep 1000");
      const successor = await create();
      expect((await successor.poll([nativeId])).get(nativeId)?.state).toMatch(/queued|active/);
      await successor.cancel([nativeId]);
      await until(successor, nativeId, ["ended"]);
    });
  });
};
