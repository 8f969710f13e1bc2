// Mounts Scalar on the document, and fills in what makes "Send" work at once: the demo's credential, and keys of this page
// load. Sent twice, a call is a replay; loaded anew, the page has new keys.

const root = document.getElementById("api");
const answer = await fetch("/openapi.json");
const content = await answer.json();

for (const item of Object.values(content.paths)) {
  for (const operation of Object.values(item)) {
    operation.parameters = operation.parameters.map((parameter) => filledIn(parameter, operation.operationId));
  }
}

function filledIn(parameter, operationId) {
  const shared = parameter.$ref && content.components.parameters[parameter.$ref.split("/").pop()];
  if (shared?.name === "Idempotency-Key") return { ...shared, example: `${operationId}-${crypto.randomUUID()}` };
  // Left to the server: an id that every call shared would tell none from another.
  if (shared?.name === "X-Request-Id") return { ...shared, example: undefined };
  return parameter;
}

const token = root.dataset.demoKey;
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
