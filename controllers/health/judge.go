package health

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// Judge says how an object that was read in full is, and why if it is not well.
func Judge(o client.Object) (status.Status, string) {
	v := judge(o)
	return v.status, v.message
}
