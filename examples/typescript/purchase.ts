// One purchase: dry run, propose, confirm, read the order.
//
// Killed at any line and started again with the same RUN, it makes one order and one charge. From the environment:
// RUN (required), COUNTERSIGN_URL, COUNTERSIGN_KEY, PAYMENT_METHOD, STATE. Exit code 0: bought; 1: refused;
// 75: not known yet, start it again with the same RUN.

import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { components } from "./countersign.js";

type Schemas = components["schemas"];
type Money = Schemas["Money"];
type Proposal = { key: string; body: string };

const { env } = process;
const SERVER = new URL(env.COUNTERSIGN_URL ?? "http://127.0.0.1:8080").href.replace(/\/$/, "");
const RUN = env.RUN ?? "";
// Beside the program, not in the working directory: started from elsewhere, it must find the same keys.
const STATE = env.STATE ?? join(import.meta.dirname, "..", "state");
const TIMEOUT = 30_000, TOTAL = 120_000, BASE = 500, CAP = 15_000, ATTEMPTS = 12; // milliseconds, but for the last

const CART: Schemas["CheckoutRequest"] = {
  items: [{ product_id: "MUG-BLUE", quantity: 1 }],
  shipping_address: { name: "Ada Lovelace", line1: "1 Market Street", city: "San Francisco", region: "CA",
                      postal_code: "94105", country: "US" },
  payment_method: env.PAYMENT_METHOD ?? "pm_sandbox_ok",
};

/** An answer that the same request will get again. */
class Refused extends Error {
  constructor(status: number, readonly problem: Partial<Schemas["Problem"]>) {
    super(`refused: ${status} ${problem.code ?? "no code"}: ${problem.detail ?? "not an answer of this API"}\n` +
          `recovery: ${problem.recovery ?? "ask_human"}\n${JSON.stringify(problem)}`);
  }
}

/** Ends the program with a message and an exit code. */
function exit(code: number, message: string): never {
  console.error(message);
  process.exit(code);
}

/** Sends the same bytes under the same key until the answer is one that won't change. */
async function call<T>(method: "GET" | "POST", path: string, body?: string, key?: string): Promise<T> {
  const headers: Record<string, string> = {
    Authorization: `Bearer ${env.COUNTERSIGN_KEY ?? "csk_demo_shopper"}`, "Agent-Task-Id": RUN,
    ...(body && { "Content-Type": "application/json" }), ...(key && { "Idempotency-Key": key }),
  };
  const giveUp = performance.now() + TOTAL;
  for (let attempt = 0; ; attempt++) {
    let reason: string, floor = 0;
    try {
      // A redirect would be followed with another method or without the body: it's an answer like any other here.
      const response = await fetch(SERVER + path, { method, headers, body: body ?? null, redirect: "manual",
                                                      signal: AbortSignal.timeout(TIMEOUT) });
      const answer = object(await response.text());
      if (response.ok && answer) return answer as T;
      const problem: Partial<Schemas["Problem"]> = answer ?? {};
      const { ok, status } = response;
      const transient = ok || status === 408 || status === 429 || status >= 500;
      if (!transient && problem.recovery !== "retry_same_key") throw new Refused(status, problem);
      reason = `${status} ${problem.code ?? ""}`;
      floor = 1000 * Number(/^\d+$/.exec(response.headers.get("retry-after") ?? "") ?? 0);
    } catch (error) {
      if (error instanceof Refused) throw error;
      reason = String((error as Error).cause ?? error); // no answer: it may have happened all the same
    }
    // Added to the floor: all who were told the same wait would come back together otherwise.
    const pause = floor + Math.random() * Math.min(CAP, BASE * 2 ** attempt);
    if (attempt + 1 === ATTEMPTS || performance.now() + pause > giveUp) {
      exit(75, `${method} ${path}: ${reason}; gave up. Not known yet: start again with RUN=${RUN}`);
    }
    console.error(`${method} ${path}: ${reason}; again in ${(pause / 1000).toFixed(1)} s`);
    await sleep(pause);
  }
}

/** The JSON object in this text; undefined if there is none: a proxy's page. */
function object(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

const written = ({ amount, currency }: Money) => `${amount} ${currency}`;

/** Whether it is no more, in the same currency, all of whose amounts have the same number of decimals. */
function within(total: Money, authorised: Money): boolean {
  const units = ({ amount }: Money) => BigInt(amount.replace(".", ""));
  return total.currency === authorised.currency && units(total) <= units(authorised);
}

/** This attempt's key and request, stored before they are first sent; it costs no more than what is authorised. */
async function proposal(attempt: number, authorised?: Money): Promise<Proposal> {
  const path = join(STATE, `${RUN}.propose-${attempt}.json`);
  if (!fs.existsSync(path)) {
    const dry = await call<Schemas["DryRun"]>("POST", "/checkout-dry-run", JSON.stringify(CART));
    const { total } = dry.plan;
    console.log(`total ${written(total)}`);
    if (authorised && !within(total, authorised)) {
      exit(1, `stopped, nothing was charged: the total was ${written(authorised)} and is ${written(total)} now; ` +
              "if it is wanted at that, it takes a new RUN");
    }
    // The request is stored too: a dry run after a restart may show another plan, and the key belongs to this one.
    const body = JSON.stringify({ ...CART, expected_total: total, expected_plan_digest: dry.plan_digest });
    const draft = join(STATE, `.${randomUUID()}`);
    fs.writeFileSync(draft, JSON.stringify({ key: randomUUID(), body } satisfies Proposal), { flush: true });
    try {
      fs.linkSync(draft, path); // whole or not at all, and never over another: a write in place could be cut short
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error; // another process of this run was first
    }
    fs.unlinkSync(draft);
  }
  const folder = fs.openSync(STATE, "r");
  fs.fsyncSync(folder); // the file's name too has to be on the disk
  fs.closeSync(folder);
  const stored = JSON.parse(fs.readFileSync(path, "utf8")) as Proposal;
  const request = JSON.parse(stored.body) as Schemas["CheckoutRequest"];
  const { expected_total: _, expected_plan_digest: __, ...cart } = request;
  if (!isDeepStrictEqual(cart, CART)) exit(1, `RUN ${RUN} asked for something else: a new purchase takes a new RUN`);
  return stored;
}

async function purchase(): Promise<Schemas["Order"]> {
  let authorised: Money | undefined;
  for (let attempt = 1; ; attempt++) {
    const { key, body } = await proposal(attempt, authorised);
    ({ expected_total: authorised } = JSON.parse(body) as { expected_total: Money });
    // In a run that goes on, this is the stored answer.
    const confirmation = await call<Schemas["Confirmation"]>("POST", "/checkout", body, key);
    for (const warning of confirmation.warnings) console.error(`warning: ${warning.detail}`);
    // Here a person or a rule says yes to confirmation.plan and its warnings. The next call moves money.
    try {
      const confirmed = await call<Schemas["Confirmed"]>("POST", `/confirm-checkout/${confirmation.confirmation_id}`);
      return await call<Schemas["Order"]>("GET", `/orders/${confirmed.order_id}`);
    } catch (error) {
      // Expired is final and nothing was charged: another key can't buy twice. But the price may have risen, and the
      // yes was to the first total: without another one, the second attempt may not cost more.
      const expired = error instanceof Refused && error.problem.code === "confirmation_expired";
      if (!expired || attempt === 2) throw error;
      console.error("the confirmation expired, nothing was charged: looking once more");
    }
  }
}

if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(RUN)) {
  exit(2, "RUN must name this purchase: letters, digits, '.', '_' and '-', up to 100");
}
fs.mkdirSync(STATE, { recursive: true });
try {
  const order = await purchase();
  console.log(`order ${order.order_id} ${order.status} ${written(order.total)}`);
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  exit(1, error.message);
}
