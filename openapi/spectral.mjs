// Spectral's rules for the document: its OpenAPI ruleset, and ours for x-ai-metadata.
import { schema, truthy } from "@stoplight/spectral-functions";
import { oas } from "@stoplight/spectral-rulesets";
import { readFileSync } from "node:fs";

// From the project's folder, where scripts/lint-openapi runs it.
const metadata = JSON.parse(readFileSync("openapi/x-ai-metadata.schema.json", "utf8"));

/** Any one scope is enough: the alternatives of `security` are the scopes that are enforced. */
function sameScopes(operation) {
  const enforced = operation["x-ai-metadata"]?.scopes ?? [];
  const wanted = enforced.length ? enforced.map((scope) => ({ bearer: [scope] })) : [{ bearer: [] }];
  if (JSON.stringify(operation.security) === JSON.stringify(wanted)) return [];
  return [{ message: `security is ${JSON.stringify(operation.security)}, x-ai-metadata names ${enforced}` }];
}

const operations = "$.paths[*][get,put,post,delete,patch,options,head,trace]";

export default {
  extends: [oas],
  rules: {
    "x-ai-metadata": {
      description: "Every operation says what it does to the world, and what makes a repeat harmless.",
      message: "{{path}}: {{error}}",
      severity: "error",
      given: operations,
      then: [
        { field: "x-ai-metadata", function: truthy },
        { field: "x-ai-metadata", function: schema, functionOptions: { schema: metadata, dialect: "draft2020-12" } },
      ],
    },
    "scopes-as-enforced": {
      description: "The scopes of an operation's security are those of its effect profile.",
      severity: "error",
      given: operations,
      then: { function: sameScopes },
    },
    // It looks for scopes in OAuth flows alone. OpenAPI 3.1 lets bearer schemes name roles that nothing else defines
    // (Security Requirement Object); Redocly's security-defined checks the scheme, and the rule above the scopes.
    "oas3-operation-security-defined": "off",
  },
};
