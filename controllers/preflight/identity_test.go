package preflight_test

import (
	"testing"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestIdentity(t *testing.T) {
	const second = v1alpha2.MoreThanOneProviderInstanceExistsReason

	for name, c := range map[string]struct {
		provider v1alpha2.Provider
		others   []v1alpha2.Provider
		want     want
	}{
		"core": {provider: provider(core, "cluster-api")},
		"core with another name": {
			provider: provider(core, "capi"),
			want: want{
				reason:  v1alpha2.IncorrectCoreProviderNameReason,
				message: "the CoreProvider must be named cluster-api, not capi; create it with that name and delete this one",
			},
		},
		"another provider may have any name": {provider: provider(infrastructure, "capi")},
		"the older one": {
			provider: provider(infrastructure, "aws", created(time.Hour)),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"), created(time.Minute))},
		},
		"the younger one": {
			provider: provider(infrastructure, "aws", created(time.Minute)),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), created(time.Hour))},
			want: want{
				reason:  second,
				waiting: true,
				message: "InfrastructureProvider aws already exists in namespace x, and a cluster can have each provider " +
					"only once; delete one of the two",
			},
		},
		"of the same age, the first by namespace": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"))},
		},
		"of the same age, not the first by namespace": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"))},
			want: want{
				reason:  second,
				waiting: true,
				message: "InfrastructureProvider aws already exists in namespace a, and a cluster can have each provider " +
					"only once; delete one of the two",
			},
		},
		"another type of the same name": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(bootstrap, "aws", in("a"))},
		},
		"another name of the same type": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "azure", in("a"))},
		},
		"the same provider in another cluster": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"), remote("there"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checker(t, append(c.others, c.provider)...).Identity(t.Context(), c.provider), c.want)
		})
	}

	t.Run("not in the cache yet", func(t *testing.T) {
		expect(t, checker(t).Identity(t.Context(), provider(infrastructure, "aws")), want{})
	})
}
