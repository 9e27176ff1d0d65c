package crds

import (
	"context"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// Changed lists, of the chart's CRDs, those that Apply would create and those that it would change.
func (a *Applier) Changed(ctx context.Context, files []chart.File, namespace string) (created, changed []string, err error) {
	for _, f := range files {
		d := newDefinition(f, namespace)
		live, err := a.live(ctx, d.name)
		switch {
		case err != nil:
			return nil, nil, err
		case live == nil:
			created = append(created, d.name)
		case live.Annotations[digestAnnotation] != d.digest:
			changed = append(changed, d.name)
		}
	}
	return created, changed, nil
}
