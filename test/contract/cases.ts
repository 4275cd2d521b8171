import { accessCases } from "./cases/access.ts";
import { admissionCases } from "./cases/admission.ts";
import { applyingCases } from "./cases/applying.ts";
import { certificateRequestCases } from "./cases/certificate-requests.ts";
import { creatingCases } from "./cases/creating.ts";
import { customResourcesCases } from "./cases/custom-resources.ts";
import { deletingCases } from "./cases/deleting.ts";
import { documentsCases } from "./cases/documents.ts";
import { eventsCases } from "./cases/events.ts";
import { fieldValidationCases } from "./cases/field-validation.ts";
import { identityCases } from "./cases/identity.ts";
import type { ContractCase } from "./cases/case-fixture.ts";
import { ownersCases } from "./cases/owners.ts";
import { patchingCases } from "./cases/patching.ts";
import { policyCases } from "./cases/policies.ts";
import { readingCases } from "./cases/reading.ts";
import { requestCases } from "./cases/requests.ts";
import { schemaCases } from "./cases/schemas.ts";
import { subresourcesCases } from "./cases/subresources.ts";
import { validationCases } from "./cases/validation.ts";
import { updatingCases } from "./cases/updating.ts";
import { watchingCases } from "./cases/watching.ts";
import { webhooksCases } from "./cases/webhooks.ts";

/** Everything that the API promises, by subject. */
export const contractCases: readonly ContractCase[] = [
  ...documentsCases,
  ...creatingCases,
  ...validationCases,
  ...fieldValidationCases,
  ...requestCases,
  ...readingCases,
  ...watchingCases,
  ...updatingCases,
  ...patchingCases,
  ...applyingCases,
  ...deletingCases,
  ...ownersCases,
  ...subresourcesCases,
  ...customResourcesCases,
  ...schemaCases,
  ...accessCases,
  ...certificateRequestCases,
  ...identityCases,
  ...policyCases,
  ...admissionCases,
  ...webhooksCases,
  ...eventsCases,
];
