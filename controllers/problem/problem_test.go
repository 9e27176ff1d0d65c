package problem_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// TestOf: of several problems, the one counts that is the cause of the others, whatever wraps it.
func TestOf(t *testing.T) {
	refused := errors.New("refused")
	patch := &problem.Error{Reason: v1alpha2.ComponentsPatchErrorReason, Message: "no", Cause: refused}
	chart := problem.Fail(v1alpha2.InstallFailedReason, "chart %s cannot be rendered", "x")
	chart.Cause = fmt.Errorf("post-renderer: %w", patch)

	for name, test := range map[string]struct {
		err  error
		want *problem.Error
	}{
		"nothing":             {nil, nil},
		"another error":       {refused, nil},
		"a problem":           {patch, patch},
		"one that is wrapped": {fmt.Errorf("context: %w", patch), patch},
		"one with a cause":    {fmt.Errorf("context: %w", chart), patch},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(problem.Of(test.err)).To(BeIdenticalTo(test.want))
		})
	}

	g := NewWithT(t)
	g.Expect(problem.Is(chart, v1alpha2.UnhealthyReason, v1alpha2.ComponentsPatchErrorReason)).To(BeTrue())
	g.Expect(problem.Is(chart, v1alpha2.InstallFailedReason)).To(BeFalse())
	g.Expect(problem.Is(refused, "")).To(BeFalse())
	g.Expect(chart).To(MatchError(refused))
}
