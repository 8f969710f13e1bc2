// Mounts Scalar on the document, and fills in what makes "Send" work at once: the demo's credential, ids of things that are
// there, and keys of this page load. Sent twice, a call is a replay; loaded anew, the page has new keys.

const root = document.getElementById("api");
const token = root.dataset.demoKey;
const text = await (await fetch("/openapi.json")).text();
const content = JSON.parse(token ? await withIdsThatAreThere(text) : text);

for (const item of Object.values(content.paths)) {
  for (const operation of Object.values(item)) {
    operation.parameters = operation.parameters.map((parameter) => filledIn(parameter, operation.operationId));
  }
}

// crypto.randomUUID() is there on https and localhost alone.
function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function filledIn(parameter, operationId) {
  const shared = parameter.$ref && content.components.parameters[parameter.$ref.split("/").pop()];
  const { name } = shared ?? parameter;
  if (name === "Idempotency-Key" && operationId !== "get_operation_status") {
    return { ...shared, example: `${operationId}-${random()}` };
  }
  // Left empty: an id that every call shared tells none from another, and a list begins at its first page.
  if (name === "X-Request-Id" || name === "cursor") return { ...(shared ?? parameter), example: undefined };
  return parameter;
}

/**
 * The document's examples name an order, a refund and confirmations of a recorded story. In the demo, things of this browser's
 * own stand in their place: made once, under keys that are kept, so that a reload makes none.
 */
async function withIdsThatAreThere(document) {
  const { paths, components } = JSON.parse(document);
  const post = (path) => paths[path].post;
  const body = (path, name) => post(path).requestBody.content["application/json"].examples[name].value;
  const recorded = (path, status, name) => post(path).responses[status].content["application/json"].examples[name].value;
  const own = JSON.parse(localStorage.getItem("countersign-examples") ?? "null") ?? { key: `docs-${random()}` };
  localStorage.setItem("countersign-examples", JSON.stringify(own));

  async function call(method, path, key, body) {
    const headers = { Authorization: `Bearer ${token}`, "Agent-Task-Id": "task-7f3a" };
    if (key) headers["Idempotency-Key"] = key;
    if (body) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
    return answer.ok ? answer.json() : {};
  }
  // Dear enough for a refund that takes two steps.
  const cart = { ...body("/checkout", "two_mugs"), items: [{ product_id: "CHOCOLATE-72", quantity: 20 }] };
  const bought = await call("POST", "/checkout", `${own.key}-order`, cart);
  const ordered = bought.confirmation_id ? await call("POST", `/confirm-checkout/${bought.confirmation_id}`) : {};
  if (!ordered.order_id) return document;
  const refund = { ...body("/refunds", "part"), order_id: ordered.order_id };
  const refunded = await call("POST", "/refunds", `${own.key}-refund`, refund);
  // What is pending expires, and is made anew when none is left.
  const list = (await call("GET", "/confirmations?status=pending&limit=100")).confirmations ?? [];
  const pending = list.find((one) => one.operation === "checkout")
    ?? await call("POST", "/checkout", random(), body("/checkout", "in_yen"));
  const second = list.find((one) => one.refund?.order_id === ordered.order_id)
    ?? await call("POST", "/refunds", random(), { ...refund, amount: { amount: "100.01", currency: "USD" } });

  const replaced = [
    [recorded("/checkout", "201", "two_mugs").confirmation_id, pending.confirmation_id],
    [recorded("/checkout", "201", "in_yen").confirmation_id, pending.confirmation_id],
    [recorded("/confirm-checkout/{confirmation_id}", "200", "as_it_is").order_id, ordered.order_id],
    [recorded("/refunds", "201", "part").refund_id, refunded.refund_id],
    [recorded("/refunds", "202", "looks_like_a_repeat").confirmation_id, second.confirmation_id],
    [components.parameters.LookedUpKey.example, `${own.key}-order`],
  ];
  return replaced.reduce((text, [from, to]) => (to ? text.replaceAll(from, to) : text), document);
}

Scalar.createApiReference(root, {
  content,
  agent: { disabled: true },
  mcp: { disabled: true },
  orderSchemaPropertiesBy: "preserve",
  authentication: {
    preferredSecurityScheme: "bearer",
    securitySchemes: token ? { bearer: { token } } : {},
  },
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  documentDownloadType: "none",
  hideClientButton: true,
  persistAuth: false,
  proxyUrl: "",
  showDeveloperTools: "never",
  telemetry: false,
  withDefaultFonts: false,
});
