package chart

import (
	"net/netip"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

var _ = Describe("The NetworkPolicy", func() {
	render := func(ctx SpecContext, args ...string) *networkingv1.NetworkPolicy {
		GinkgoHelper()

		template := []string{"template", release, light, "-n", namespace, "-s", "templates/networkpolicy.yaml"}
		policy := &networkingv1.NetworkPolicy{}
		Expect(yaml.UnmarshalStrict([]byte(run(ctx, "helm", append(template, args...)...)), policy)).To(Succeed())

		return policy
	}

	It("allows by default what the operator needs, and no credentials of clouds or other ports", func(ctx SpecContext) {
		policy := render(ctx)
		Expect(policy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress))

		for _, needed := range []connection{
			{"10.96.0.10", "UDP", 53},           // DNS
			{"10.96.0.10", "TCP", 53},           // DNS, for long answers
			{"169.254.20.10", "UDP", 53},        // a DNS cache on the node
			{"fd00::a", "UDP", 53},              // DNS by IPv6
			{"10.128.0.7", "UDP", 5353},         // the pods of OpenShift's DNS
			{"10.96.0.1", "TCP", 443},           // the API server's Service
			{"192.168.0.2", "TCP", 6443},        // the API server
			{"192.168.49.2", "TCP", 8443},       // minikube's API server
			{"140.82.121.4", "TCP", 443},        // github.com
			{"2606:50c0:8000::154", "TCP", 443}, // a release server by IPv6
		} {
			Expect(needed.isAllowed(policy)).To(BeTrue(), "%v", needed)
		}

		for _, needless := range []connection{
			{"169.254.169.254", "TCP", 443},
			{"169.254.169.254", "TCP", 80},
			{"fd00:ec2::254", "TCP", 443},
			{"fe80::1", "TCP", 443},
			{"10.0.0.5", "TCP", 22},
			{"10.0.0.5", "TCP", 10250}, // a kubelet
			{"10.0.0.5", "TCP", 2379},  // etcd
			{"10.0.0.5", "UDP", 443},
		} {
			Expect(needless.isAllowed(policy)).To(BeFalse(), "%v", needless)
		}

		Expect(policy.Spec.Ingress).To(HaveExactElements(And(
			HaveField("Ports", HaveExactElements(HaveField("Port.StrVal", "metrics"))),
			HaveField("From", HaveExactElements(
				HaveField("NamespaceSelector.MatchLabels", Equal(map[string]string{"metrics": "enabled"})))))))

		policy = render(ctx, "--set", "networkPolicy.metricsFrom=null")
		Expect(policy.Spec.Ingress).To(BeEmpty(), "no peer is named")

		policy = render(ctx, "--set-json", "networkPolicy.metricsFrom=[]")
		Expect(policy.Spec.Ingress).To(BeEmpty(), "no peer is named")
	})

	It("has the ports, addresses and rules in the values", func(ctx SpecContext) {
		policy := render(ctx, "--set", "networkPolicy.egressPorts={443,3128},networkPolicy.egressExcept={10.0.0.0/8}",
			"--set-json", "networkPolicy.egress="+
				`[{"ports":[{"port":5000,"protocol":"TCP"}],"to":[{"ipBlock":{"cidr":"10.1.0.0/16"}}]}]`,
			"--set", "flags.metrics-bind-address=0")

		Expect(connection{"192.0.2.1", "TCP", 3128}.isAllowed(policy)).To(BeTrue())
		Expect(connection{"192.0.2.1", "TCP", 6443}.isAllowed(policy)).To(BeFalse())
		Expect(connection{"10.0.0.1", "TCP", 443}.isAllowed(policy)).To(BeFalse())
		Expect(connection{"10.1.0.1", "TCP", 5000}.isAllowed(policy)).To(BeTrue())
		Expect(policy.Spec.Ingress).To(BeEmpty(), "without metrics, nothing connects to the operator")
	})

	It("allows connections to the metrics only from the peers in the values", func(ctx SpecContext) {
		policy := render(ctx,
			"--set-json", `networkPolicy.metricsFrom=[{"podSelector":{"matchLabels":{"app":"prometheus"}}}]`)
		Expect(policy.Spec.Ingress).To(HaveExactElements(And(
			HaveField("Ports", HaveExactElements(HaveField("Port.StrVal", "metrics"))),
			HaveField("From", HaveExactElements(
				HaveField("PodSelector.MatchLabels", HaveKeyWithValue("app", "prometheus")))))))
	})
})

// connection is one from the operator.
type connection struct {
	address, protocol string
	port              int32
}

// isAllowed reports whether the egress rules of a policy, which have numeric ports and blocks of addresses only, allow
// the connection.
func (c connection) isAllowed(policy *networkingv1.NetworkPolicy) bool {
	address := netip.MustParseAddr(c.address)
	within := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(address) }

	return slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		port := slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			return p.Port.IntVal == c.port && string(*p.Protocol) == c.protocol
		})
		peer := slices.ContainsFunc(rule.To, func(p networkingv1.NetworkPolicyPeer) bool {
			return within(p.IPBlock.CIDR) && !slices.ContainsFunc(p.IPBlock.Except, within)
		})

		return port && (peer || len(rule.To) == 0)
	})
}
