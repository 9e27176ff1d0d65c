package compat

import (
	"github.com/capstan-project/capstan/test/compat/table"
)

const clusterctlSection = "Commands of clusterctl on providers of Capstan"

// The rows of the table that `make compat` prints, for clusterctl's commands.
var (
	rowPlan       = table.Row(clusterctlSection, "upgrade plan: what is installed, and the upgrades")
	rowGenerate   = table.Row(clusterctlSection, "generate cluster, without the name of the infrastructure")
	rowKubeconfig = table.Row(clusterctlSection, "get kubeconfig")
	rowInventory  = table.Row(clusterctlSection, "the inventory, after its CustomResourceDefinition was deleted")
	rowInit       = table.Row(clusterctlSection, "init of what is installed: refused")
	rowApply      = table.Row(clusterctlSection, "upgrade apply: nothing harmed")
	rowUpgraded   = table.Row(clusterctlSection, "upgrade plan after an upgrade by Capstan")
	rowDelete     = table.Row(clusterctlSection, "delete: nothing harmed")
	rowRemoved    = table.Row(clusterctlSection, "upgrade plan after a removal by Capstan")
	rowAnother    = table.Row(clusterctlSection, "init of another provider: those of Capstan stay as they are")
	rowDescribe   = table.Row(clusterctlSection, "describe cluster")
	rowMove       = table.Row(clusterctlSection, "move from Capstan to Capstan, and back: equal counts")
	rowBootstrap  = table.Row(clusterctlSection, "move from a bootstrap cluster of clusterctl to Capstan: equal counts")
	rowPolicy     = table.Row(clusterctlSection, "all that would harm a provider, with the admission policy: refused")
)
