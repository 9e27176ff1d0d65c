package storage

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestRequestLabels(t *testing.T) {
	g := NewWithT(t)
	request := state.Request{
		UID: "0f2c1e9a-7d6b-4a55-9c7e-2f3a4b5c6d7e", Generation: 1234567, RequestedAt: "2026-01-01", Automatic: "v1.0.1",
	}
	labels := RequestLabels(request, 99999)

	for key, value := range labels {
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), key)
	}

	g.Expect(requestOf(labels, 99999)).To(Equal(request))
	maps.Copy(labels, RequestLabels(state.Request{UID: "uid", Generation: 2}, 99999))
	g.Expect(requestOf(labels, 99999)).To(Equal(state.Request{UID: "uid", Generation: 2}), "another request was handled")
	labels = RequestLabels(request, 99999)
	g.Expect(requestOf(labels, 100000)).To(BeZero(), "helm has copied the labels")
	g.Expect(requestOf(nil, 1)).To(BeZero())
	g.Expect(requestOf(map[string]string{RequestLabel: "uid.x.1"}, 1)).To(BeZero())
	g.Expect(RequestLabels(state.Request{}, 1)).To(BeEmpty())
}

func TestRollbacksDoNotInheritTheRequest(t *testing.T) {
	g := NewWithT(t)
	request := state.Request{UID: "uid", Generation: 2, Automatic: "v1.0.1"}
	first := Labels{Holder: "me", Digest: "v1-x", Request: request}.appliedTo(nil, 1)
	g.Expect(requestOf(first, 1)).To(Equal(request))

	rollback := Labels{Holder: "me", Digest: "v1-x", RollbackTo: 1}.appliedTo(maps.Clone(first), 3)
	g.Expect(rollback).NotTo(Or(HaveKey(RequestLabel), HaveKey(RequestedAtLabel), HaveKey(AutomaticLabel)))
}
