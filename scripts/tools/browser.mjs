// Opens the pages in headless Chromium with every other host unresolvable: no request may leave, nothing may be logged as
// an error, and every operation is sent from /docs as it is filled in there, and succeeds (propose with 201). Screenshots,
// wide and narrow, light and dark, are saved. The guide's diagrams have to be readable to Mermaid. Arguments: the server's
// URL, the folder for the screenshots, Chromium's path.
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, folder, executablePath] = process.argv.slice(2);
const { hostname, origin } = new URL(url);
mkdirSync(folder, { recursive: true });

const browser = await chromium.launch({
  executablePath,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", `--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE ${hostname}`,
  ],
});

/** A page that collects whatever goes wrong on it. */
async function open(path, context, faults) {
  const page = await context.newPage();
  page.on("request", (request) => {
    const target = new URL(request.url());
    if (target.protocol.startsWith("http") && target.origin !== origin) faults.push(`a request to ${request.url()}`);
  });
  page.on("requestfailed", (request) => faults.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on("response", (response) => {
    if (response.status() >= 400) faults.push(`${response.url()} answered ${response.status()}`);
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  await page.goto(url + path, { waitUntil: "networkidle" });
  return page;
}

async function fits(page, faults) {
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wider > 0) faults.push(`the page is ${wider} px wider than the window`);
}

/** Sends an operation with what is filled in, and returns the answer. */
async function press(page, { tag, method, path }) {
  const operation = page.locator(`[id$='tag/${tag}/${method}${path}']`).first();
  await operation.scrollIntoViewIfNeeded();
  await operation.getByRole("button", { name: /test request/i }).first().click();
  const called = new RegExp(`^${path.replace(/\{[^}]*\}/g, "[^/]+")}$`);
  const answered = page.waitForResponse(
    (response) => called.test(new URL(response.url()).pathname) && response.request().method() === method,
  );
  await page.getByRole("button", { name: /^send/i }).first().click();
  return answered;
}

const views = [
  ["wide-light", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
  ["wide-dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
  ["narrow-light", { viewport: { width: 390, height: 844 }, colorScheme: "light" }],
  ["narrow-dark", { viewport: { width: 390, height: 844 }, colorScheme: "dark" }],
];
const pages = [["start", "/"], ["problem", "/problems/outcome_unknown"], ["problems", "/problems"], ["docs", "/docs"]];

let failed = false;
function report(what, faults) {
  console.log(`${faults.length ? "FAILED" : "ok"}  ${what}`);
  for (const fault of faults) console.log(`        ${fault}`);
  failed ||= faults.length > 0;
}

for (const [view, options] of views) {
  for (const [name, path] of pages) {
    const faults = [];
    const context = await browser.newContext(options);
    const page = await open(path, context, faults);
    if (name === "docs") await page.getByRole("heading", { name: "Countersign" }).first().waitFor();
    await fits(page, faults);
    await page.screenshot({ path: join(folder, `${name}-${view}.png`), fullPage: name !== "docs" });
    report(`${path} ${view}`, faults);
    await context.close();
  }
}

const { paths } = await (await fetch(`${url}/openapi.json`)).json();
const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, { operationId, tags }]) => ({
    id: operationId, tag: tags[0], method: method.toUpperCase(), path,
  })),
);
const visitor = await browser.newContext(views[0][1]);
for (const operation of operations) {
  const faults = [];
  const page = await open(`/docs#tag/${operation.tag}/${operation.method}${operation.path}`, visitor, faults);
  const status = await press(page, operation).then((answer) => answer.status(), (error) => error.message);
  const wanted = operation.id === "propose_checkout" ? status === 201 : status >= 200 && status < 300;
  if (!wanted) faults.push(`it was answered ${status}`);
  if (operation.id === "propose_checkout") await page.screenshot({ path: join(folder, "propose.png") });
  report(`${operation.id} sent from /docs: ${status}`, faults);
  await page.close();
}

for (const file of readdirSync("docs/guide").filter((file) => file !== "README.md")) {
  const faults = [];
  const diagrams = [...readFileSync(join("docs/guide", file), "utf8").matchAll(/```mermaid\n([\s\S]*?)```/g)];
  if (diagrams.length === 0) faults.push("no diagram");
  for (const [, diagram] of diagrams) {
    const page = await browser.newPage();
    await page.addScriptTag({ path: "target/tools/node_modules/mermaid/dist/mermaid.min.js" });
    const fault = await page.evaluate((text) => mermaid.parse(text).then(() => null, (error) => error.message), diagram);
    if (fault) faults.push(fault);
    await page.close();
  }
  report(`docs/guide/${file}`, faults);
}

await browser.close();
process.exit(failed ? 1 : 0);
