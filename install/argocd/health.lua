-- Health of the suite's objects for Argo CD: resource.customizations.health.machineconfiguration.openshift.io_KIND in the
-- ConfigMap argocd-cm (docs/pipelines.md). It follows the conditions Reconciling and Stalled.
local health = { status = "Progressing", message = "no controller has looked at it yet" }
local status = obj.status
if status == nil or status.conditions == nil then
  return health
end
if status.observedGeneration ~= nil and obj.metadata.generation ~= nil and status.observedGeneration < obj.metadata.generation then
  health.message = "no controller has looked at its last change yet"
  return health
end
local paused = obj.spec ~= nil and obj.spec.paused == true
for _, condition in ipairs(status.conditions) do
  if condition.status == "True" and condition.type == "Stalled" then
    return { status = "Degraded", message = condition.message }
  end
  if condition.status == "True" and condition.type == "Reconciling" then
    return { status = paused and "Suspended" or "Progressing", message = condition.message }
  end
  if condition.type == "Reconciling" and condition.status == "False" then
    health = { status = "Healthy", message = "" }
  end
end
return health
