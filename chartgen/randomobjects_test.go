package chartgen_test

import (
	"fmt"
	"slices"
	"strings"
)

// content returns a random object.
func (r *random) content() object {
	switch r.choose(12) {
	case 0, 1:
		return r.object("v1", "ConfigMap", entry{"data", r.data()})
	case 2:
		return r.object("v1", "Secret", entry{"stringData", r.data()}, entry{"type", "Opaque"})
	case 3, 4:
		kind := r.one("Deployment", "Deployment", "DaemonSet", "StatefulSet")

		return r.object("apps/v1", kind, entry{"spec", r.deployment()})
	case 5, 6:
		return r.customResourceDefinition()
	case 7:
		return r.webhooks()
	case 8:
		return r.binding()
	case 9:
		if r.count == 1 {
			return r.object("v1", "Namespace")
		}

		return r.object("v1", "ServiceAccount", entry{"automountServiceAccountToken", plain(r.one("true", "false", "yes"))})
	case 10:
		return r.object("cert-manager.io/v1", "Certificate", entry{"spec", object{
			{"dnsNames", list{"odd-service.system.svc", "odd-service.${FIRST:=one}.svc"}},
			{"issuerRef", object{{"kind", plain("Issuer")}, {"name", r.text()}}},
		}})
	default:
		return r.object("v1", "List", entry{"items", list{
			r.object("v1", "ConfigMap", entry{"data", r.data()}), r.object("v1", "Secret"),
		}})
	}
}

// object returns an object with random metadata.
func (r *random) object(apiVersion, kind string, fields ...entry) object {
	metadata := object{{"name", r.name()}}

	if !r.rarely() {
		metadata = append(metadata, entry{"labels", r.labels()})
	} else if r.rarely() {
		metadata = append(metadata, entry{"labels", plain(r.one("null", "~", "[]", "text", "{}", "12"))})
	}

	if r.choose(2) == 1 {
		metadata = append(metadata, entry{"annotations", r.labels()})
	}

	if r.choose(2) == 1 {
		namespace := r.one("system", `"`+strings.ReplaceAll(r.variable(), `"`, "")+`"`, "other")
		metadata = append(object{{"namespace", plain(namespace)}}, metadata...)
	}

	head := object{{"apiVersion", plain(apiVersion)}, {"kind", plain(kind)}}

	return slices.Concat(head, fields, object{{"metadata", metadata}})
}

// name returns a name that is unique in the file, with up to 253 characters.
func (r *random) name() any {
	name := fmt.Sprintf("object-%d", r.count)

	switch r.choose(8) {
	case 3:
		name += "." + strings.Repeat("long-", 50)
		return plain(name[:252] + "x")
	case 4, 6:
		if r.inCRD {
			return plain(name + "-${IN_CRD:=one}")
		}

		return plain(name + r.one("-${SECOND:=two}", "-${FIRST}", ".${THIRD:=3}", "${SECOND:=two}${FIRST:=1}"))
	case 5:
		return plain(quote(name + ":UPPER_system"))
	}

	return plain(name)
}

// text returns a random text.
func (r *random) text() string {
	text := r.one("text", "", "{{ .Values }}", "a: b", "- c", "first\nsecond", "first\n\n  second\n", " leading",
		"trailing ", "it's", `"quoted"`, "größe→✓", "{{- define \"x\" }}", "}}", "<no value>", "# no comment",
		"12", "true", "null", "---", "\\n", "`", "%s", "first\n---\nsecond", "--- # a", "...", "<no ", "value>",
		"\ufeffmark", "a\tb", "\u2028", "~", "key: &anchor value", "*alias", "?", "-")

	if r.choose(3) == 2 {
		text += r.variable() + r.one("", " ", "x", "\n")
	}

	return text
}

// data returns a map of texts.
func (r *random) data() object {
	var data object

	for i := range r.choose(4) + 1 {
		key := r.one("key", "config.yaml", "a key", "{{ key }}", "${FIRST:=one}", "~", "x:y")
		if r.inCRD || i > 0 {
			key = fmt.Sprintf("key%d", i)
		}

		data = append(data, entry{key, r.text()})
	}

	if r.rarely() {
		data = append(data, entry{"anchor", plain("&anchor " + quote(r.text()))}, entry{"alias", plain("*anchor")})
	}

	return data
}

// labels returns labels or annotations.
func (r *random) labels() object {
	var labels object

	more := "${SECOND:=two}"
	if r.inCRD {
		more = "${IN_CRD:=one}"
	}

	for range r.choose(4) {
		labels = append(labels, entry{
			r.one("own", "app.kubernetes.io/name", "cluster.x-k8s.io/provider", "clusterctl.cluster.x-k8s.io",
				"cluster.x-k8s.io/v1beta2", "helm.sh/hook", "helm.sh/resource-policy", "meta.helm.sh/release-name",
				"cert-manager.io/inject-ca-from", "a key", "labels", "metadata", more),
			r.label(),
		})
	}

	return labels
}

// label returns the value of a label or annotation, rarely one of the wrong type.
func (r *random) label() any {
	if r.rarely() {
		return plain(r.one("12", "true", "1.5", "2001-01-01", "[a]", "{a: b}", "yes", "0o7", "!!str 12", "''"))
	}

	return r.one("system/certificate", "text", "", "v1", "pre-install", "keep", r.text())
}

// image returns an image, rarely one that is not canonical.
func (r *random) image() plain {
	if !r.rarely() {
		return plain(r.one("registry.example.com/odd/manager:v1", "localhost:5000/odd",
			"registry.example.com/odd/manager@sha256:"+strings.Repeat("0", 64)))
	}

	return plain(r.one("nginx", "foo/bar:v1", "docker.io/nginx", "docker.io/library/nginx", "index.docker.io/a/b", `""`,
		"null", "12", "Upper.example/Case", "${FIRST:=foo/bar}", "${SECOND:=registry.example.com/a}",
		"registry.example.com/a:${THIRD:=v1}", `"${FIRST}"`, "registry.example.com/${SECOND:=two}",
		"http://example.com/a", "a.b/c@sha256:12", "[a]", "a.b/c:v1 "))
}

func (r *random) deployment() object {
	container := object{
		{"name", plain(r.one("manager", "other", "${SECOND:=two}"))},
		{"image", r.image()},
		{"args", list{"--leader-elect", "--x=" + r.variable(), r.text()}},
		{"env", list{object{{"name", plain("A")}, {"value", r.label()}}}},
		{"resources", object{{"limits", object{{"cpu", plain(r.one("100m", "1", "0.5", "1000m", `"2"`, "1e3m"))}}}}},
	}

	pod := object{
		{"serviceAccountName", plain("manager")},
		{"containers", list{container}},
		{"terminationGracePeriodSeconds", plain(r.one("10", "1e1", "0o7", "010", `"10"`, "${THIRD:=10}"))},
	}

	if r.rarely() {
		pod = append(pod, entry{"initContainers", list{object{{"name", plain("first")}, {"image", r.image()}}}})
	}

	return object{
		{"replicas", plain(r.one("1", "${THIRD:=2}", "1.0", "null"))},
		{"selector", object{{"matchLabels", object{{"a", plain("b")}}}}},
		{"template", object{{"metadata", object{{"labels", object{{"a", plain("b")}}}}}, {"spec", pod}}},
	}
}

func (r *random) customResourceDefinition() object {
	r.inCRD = true
	defer func() { r.inCRD = false }()

	schema := object{
		{"description", r.text()},
		{"type", plain("object")},
		{"properties", object{{"spec", object{
			{"default", r.data()},
			{"type", plain("object")},
			{"maximum", plain(r.one("9223372036854775807", "1", "1.5", "1e3"))},
		}}}},
	}

	version := object{
		{"name", plain("v1")}, {"served", plain("true")}, {"storage", plain(r.one("true", "yes", "on"))},
		{"schema", object{{"openAPIV3Schema", schema}}},
	}

	return r.object("apiextensions.k8s.io/v1", "CustomResourceDefinition", entry{"spec", object{
		{"group", plain("odd.example.com")},
		{"scope", plain("Namespaced")},
		{"names", object{{"kind", plain("Odd")}, {"plural", plain("odds")}}},
		{"conversion", object{{"strategy", plain("Webhook")}, {"webhook", object{{"clientConfig", object{{"service", object{
			{"name", plain("odd")}, {"namespace", plain("system")}, {"path", plain("/convert")},
		}}}}}}}},
		{"versions", list{version}},
	}})
}

func (r *random) webhooks() object {
	service := object{{"name", plain("odd")}, {"namespace", plain("system")}, {"path", plain("/x")}}

	return r.object("admissionregistration.k8s.io/v1",
		r.one("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"), entry{"webhooks", list{object{
			{"name", "a.odd.example.com"},
			{"clientConfig", object{{"service", service}}},
			{"sideEffects", plain("None")},
			{"admissionReviewVersions", list{"v1"}},
			{"failurePolicy", plain(r.one("Fail", "Ignore"))},
		}}})
}

func (r *random) binding() object {
	kind := r.one("RoleBinding", "ClusterRoleBinding")

	return r.object("rbac.authorization.k8s.io/v1", kind,
		entry{"roleRef", object{
			{"apiGroup", plain("rbac.authorization.k8s.io")}, {"kind", plain("ClusterRole")}, {"name", r.text()},
		}},
		entry{"subjects", list{
			object{{"kind", plain("ServiceAccount")}, {"name", plain("manager")}, {"namespace", plain("system")}},
			object{{"kind", plain("Group")}, {"name", r.text()}},
		}},
	)
}
