package release_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/apply"
)

// pages passes the lists of an engine on, or fails them, and counts them.
type pages struct {
	http.RoundTripper
	// fail returns a request's error or answer; the API server answers if both are nil.
	fail func(*http.Request) (*http.Response, error)

	mu    sync.Mutex
	asked []string // the lists that were asked for
}

func (p *pages) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("limit") {
		p.mu.Lock()
		p.asked = append(p.asked, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		p.mu.Unlock()
	}

	if response, err := p.fail(r); response != nil || err != nil {
		return response, err
	}

	return p.RoundTripper.RoundTrip(r)
}

// refusal returns the answer of an API server that fails with a code, reason and message.
func refusal(r *http.Request, code int, reason metav1.StatusReason, message string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`,
		code, reason, message)

	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// isList reports whether a request is for a page of a list of ConfigMaps; continued for one after the first.
func isList(r *http.Request, continued bool) bool {
	return strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Has("limit") &&
		r.URL.Query().Has("continue") == continued
}

// briefly is how long an attempt takes that is not answered.
const briefly = time.Second

var _ = Describe("The objects of a release whose inventory is lost", func() {
	var (
		namespace string
		search    apply.Search
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)

		scheme := runtime.NewScheme()
		Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())

		definitions, err := ctrlclient.New(apiServer.Config(), ctrlclient.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())

		search = apply.Search{
			Selector: labels.Everything(),
			Resources: []schema.GroupResource{
				{Resource: "configmaps"}, {Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
				{Group: "away.test", Resource: "things"},
			},
			Definitions: definitions,
			Progress:    &apply.Progress{},
		}

		mustApply(ctx, newEngine("one"), specOf(namespace, "1.0.0", configMap("config", ""), configMap("moved", ""),
			clusterRole, deployment("manager", "1")))
		kubectlApply(ctx, namespace, configMap("other", ""))
		run(ctx, "kubectl", "annotate", "--overwrite", "configmap", "moved", "-n", namespace,
			"meta.helm.sh/release-name=another")
	})

	config := func() string { return fmt.Sprintf("ConfigMap %s/config", namespace) }
	role := func() string { return fmt.Sprintf("ClusterRole %s-role", namespace) }

	// attempt makes one attempt, whose requests fail so. It returns what was found until then, and which lists that took.
	attempt := func(
		ctx context.Context, fail func(*http.Request) (*http.Response, error),
	) (found, asked []string, err error) {
		GinkgoHelper()

		lists := &pages{fail: fail}
		engine := newEngine("faulty", func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				lists.RoundTripper = next
				return lists
			})
		})

		if search.Reader == nil {
			defer func() { search.Reader = nil }()

			search.Reader = engine.Metadata()
		}

		keys, err := engine.Search(ctx, releaseIn(namespace), search)
		for _, key := range keys {
			found = append(found, key.String())
		}

		return found, lists.asked, err
	}
	allAnswered := func(*http.Request) (*http.Response, error) { return nil, nil }
	find := func(ctx context.Context) []string {
		GinkgoHelper()

		found, _, err := attempt(ctx, allAnswered)
		Expect(err).NotTo(HaveOccurred())

		return found
	}

	It("are found by its marks, but not what a controller has created, nor other kinds", func(ctx SpecContext) {
		manager := getDeployment(ctx, namespace, "manager")
		owner := metav1.NewControllerRef(manager, appsv1.SchemeGroupVersion.WithKind("Deployment"))
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "created", Annotations: manager.Annotations, OwnerReferences: []metav1.OwnerReference{*owner},
		}}
		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, created, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		Expect(find(ctx)).To(ConsistOf(role(), config()))
	})

	Describe("among many", func() {
		// Those of a namespace that comes first fill two pages.
		BeforeEach(func(ctx SpecContext) {
			for i := range 41 {
				filler := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("filler-%d", i)}}
				_, err := client.CoreV1().ConfigMaps("default").Create(ctx, filler, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}

			DeferCleanup(func(ctx SpecContext) {
				Expect(client.CoreV1().ConfigMaps("default").
					DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
			})
		})

		It("are found by attempts that have the time for one page each", func(ctx SpecContext) {
			onePage := func() (found, asked []string, err error) {
				read := 0

				short, cancel := context.WithTimeout(ctx, briefly)
				defer cancel()

				return attempt(short, func(r *http.Request) (*http.Response, error) {
					if !isList(r, false) && !isList(r, true) {
						return nil, nil
					}

					if read++; read == 1 {
						return nil, nil
					}

					<-r.Context().Done()

					return nil, r.Context().Err()
				})
			}

			found, asked, err := onePage()
			Expect(err).To(MatchError(fmt.Sprintf("not all objects of release %s are known: "+
				"configmaps cannot be listed yet: the API server takes too long", releaseIn(namespace))))
			Expect(found).To(ConsistOf(role()))
			Expect(asked).To(ContainElements("configmaps", "configmaps", "clusterroles"))

			_, asked, err = onePage()
			Expect(expectError[*apply.UnlistedError](err).Lasting()).To(BeFalse())
			Expect(asked).To(ConsistOf("configmaps", "configmaps"))

			found, asked, err = attempt(ctx, func(r *http.Request) (*http.Response, error) {
				Expect(isList(r, false)).To(BeFalse(), "the first page was read")
				return nil, nil
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(ConsistOf(config(), role()))
			Expect(asked).To(HaveEach("configmaps"))

			Expect(find(ctx)).To(ConsistOf(config(), role()), "it is remembered")
		})

		It("are searched for again from the first page if the API server does not know the next one", func(ctx SpecContext) {
			_, _, err := attempt(ctx, func(r *http.Request) (*http.Response, error) {
				if isList(r, true) {
					return refusal(r, http.StatusGone, metav1.StatusReasonExpired, "too old"), nil
				}

				return nil, nil
			})
			Expect(err).To(MatchError(ContainSubstring("configmaps cannot be listed yet: too old")))

			first := 0
			found, _, err := attempt(ctx, func(r *http.Request) (*http.Response, error) {
				if isList(r, false) {
					first++
				}

				return nil, nil
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(first).To(Equal(1))
			Expect(found).To(ConsistOf(config(), role()))
		})
	})

	DescribeTable("are not of a kind that no attempt can list",
		func(ctx SpecContext, code int, reason metav1.StatusReason) {
			found, _, err := attempt(ctx, func(r *http.Request) (*http.Response, error) {
				if isList(r, false) {
					return refusal(r, code, reason, "no"), nil
				}

				return nil, nil
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(ConsistOf(role()))
		},
		Entry("because that is forbidden", http.StatusForbidden, metav1.StatusReasonForbidden),
		Entry("because it does not exist", http.StatusNotFound, metav1.StatusReasonNotFound),
		Entry("because it has no lists", http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed),
	)

	DescribeTable("are known once a kind can be listed that",
		func(ctx SpecContext, reason string, fail func(*http.Request) (*http.Response, error)) {
			short, cancel := context.WithTimeout(ctx, briefly)
			defer cancel()

			found, _, err := attempt(short, func(r *http.Request) (*http.Response, error) {
				if isList(r, false) {
					return fail(r)
				}

				return nil, nil
			})
			Expect(err).To(MatchError(fmt.Sprintf("not all objects of release %s are known: "+
				"configmaps cannot be listed yet: %s", releaseIn(namespace), reason)))
			Expect(expectError[*apply.UnlistedError](err)).To(And(
				HaveField("Lasting()", false), HaveField("NeedsManager()", false)))
			Expect(found).To(ConsistOf(role()), "the others were listed")

			found, asked, err := attempt(ctx, allAnswered)
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(ConsistOf(config(), role()))
			Expect(asked).To(HaveEach("configmaps"))
		},
		Entry("is not answered", "the API server takes too long", func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}),
		Entry("cannot be reached", "connection refused", func(*http.Request) (*http.Response, error) {
			return nil, syscall.ECONNREFUSED
		}),
		Entry("fails", "etcdserver: leader changed", func(r *http.Request) (*http.Response, error) {
			return refusal(r, http.StatusInternalServerError, metav1.StatusReasonInternalError,
				"etcdserver: leader changed"), nil
		}),
		Entry("is not cached yet", "storage is (re)initializing", func(r *http.Request) (*http.Response, error) {
			return refusal(r, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
				"storage is (re)initializing"), nil
		}),
		Entry("may be listed hours later", "slow down", func(r *http.Request) (*http.Response, error) {
			later := refusal(r, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "slow down")
			later.Header.Set("Retry-After", "3600")

			return later, nil
		}),
	)

	DescribeTable("are searched for again after the API server failed",
		func(ctx SpecContext, path string) {
			_, _, err := attempt(ctx, func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, path) {
					return nil, syscall.ECONNREFUSED
				}

				return nil, nil
			})
			Expect(err).To(MatchError(And(
				ContainSubstring("search for the objects of release "+namespace), ContainSubstring("connection refused"))))
			Expect(find(ctx)).To(ConsistOf(config(), role()))
		},
		Entry("to list its own kinds", "/api"),
		Entry("to list its API groups", "/apis"),
	)

	It("are not known while an API that may have some does not respond", func(ctx SpecContext) {
		register := func(group string) {
			kubectlApply(ctx, "", fmt.Sprintf("apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n"+
				"metadata: {name: v1.%[1]s}\nspec: {group: %[1]s, version: v1, groupPriorityMinimum: 1, versionPriority: 1, "+
				"insecureSkipTLSVerify: true, service: {namespace: %[2]s, name: missing}}\n", group, namespace))
			DeferCleanup(func(ctx SpecContext) {
				run(ctx, "kubectl", "delete", "apiservice", "v1."+group, "--ignore-not-found")
			})
		}

		register("irrelevant.test")
		register("away.test")
		Eventually(func() error {
			search.Progress = &apply.Progress{}
			_, _, err := attempt(ctx, allAnswered)

			return err
		}).Should(MatchError(And(
			ContainSubstring("things.away.test cannot be listed yet: its API does not respond: "),
			Not(ContainSubstring("irrelevant")))))
		run(ctx, "kubectl", "delete", "apiservice", "v1.away.test")
		Eventually(func() error { _, _, err := attempt(ctx, allAnswered); return err }).Should(Succeed())
		Expect(find(ctx)).To(ConsistOf(config(), role()))
	})

	It("are found by the reader, and deleted with the engine's own permissions", func(ctx SpecContext) {
		engine := newEngine("tenant", func(c *rest.Config) { c.Impersonate.UserName = "stranger" })
		search.Reader = newEngine("one").Metadata()

		keys, err := engine.Search(ctx, releaseIn(namespace), search)
		Expect(err).NotTo(HaveOccurred())
		Expect(keys).To(HaveLen(2))

		_, err = uninstall(ctx, engine, releaseIn(namespace), 0, false)
		Expect(expectError[*apply.RemoveError](err)).To(MatchError(ContainSubstring(`User "stranger" cannot`)))
		Expect(configMaps(ctx, namespace)).To(ContainElement("config"))
	})

	Describe("of a kind of its own, whose conversion webhook fails", func() {
		const broken = "its conversion webhook, Service default/missing, fails: "

		// define makes the versions of a CRD v1 and v2, of which one is stored.
		define := func(ctx context.Context, stored string) {
			GinkgoHelper()
			kubectlApply(ctx, "", fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: owns.owned.test}
spec:
  group: owned.test
  names: {kind: Own, plural: owns}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: %t, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: %t, schema: {openAPIV3Schema: {type: object}}}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: missing}}}
`, stored == "v1", stored == "v2"))
		}
		// own creates an object of the release in the version that is stored.
		own := func(ctx context.Context, version string) {
			GinkgoHelper()
			Eventually(func() error {
				_, err := apiServer.Command(ctx, "kubectl", "get", "owns."+version+".owned.test", "-A").Output()
				return err
			}).Should(Succeed())
			kubectlApply(ctx, namespace, fmt.Sprintf("apiVersion: owned.test/%s\nkind: Own\nmetadata:\n  name: own\n"+
				"  annotations: {meta.helm.sh/release-name: %s, meta.helm.sh/release-namespace: %s}\n",
				version, name, namespace))
		}

		BeforeEach(func(ctx SpecContext) {
			search.Own = apply.OwnKinds{{Group: "owned.test", Resource: "owns"}}

			DeferCleanup(func(ctx SpecContext) {
				run(ctx, "kubectl", "patch", "crd", "owns.owned.test", "--type=merge", "-p",
					`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
				run(ctx, "kubectl", "delete", "crd", "owns.owned.test")
			})
		})

		It("are found in the version that they are stored in", func(ctx SpecContext) {
			define(ctx, "v1")
			own(ctx, "v1")
			Expect(find(ctx)).To(ConsistOf(config(), role(), fmt.Sprintf("Own %s/own", namespace)))
		})

		It("are not known if they are stored in another version, until that can be converted", func(ctx SpecContext) {
			define(ctx, "v1")
			own(ctx, "v1")
			define(ctx, "v2")

			var found []string

			Eventually(func() (err error) {
				search.Progress = &apply.Progress{}
				found, _, err = attempt(ctx, allAnswered)

				return err
			}).Should(MatchError(ContainSubstring("owns.owned.test cannot be listed yet: " + broken)))
			Expect(found).To(ConsistOf(config(), role()))

			_, _, err := attempt(ctx, allAnswered)
			Expect(expectError[*apply.UnlistedError](err)).To(And(
				HaveField("Lasting()", true), HaveField("NeedsManager()", true)))

			search.Own, search.Resources = nil, append(search.Resources, search.Own...)
			_, _, err = attempt(ctx, allAnswered)
			Expect(expectError[*apply.UnlistedError](err)).To(And(
				HaveField("Lasting()", true), HaveField("NeedsManager()", false)), "it is another provider's")

			run(ctx, "kubectl", "patch", "crd", "owns.owned.test", "--type=merge", "-p",
				`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
			Eventually(func() error { _, _, err := attempt(ctx, allAnswered); return err }).Should(Succeed())
			Expect(find(ctx)).To(ConsistOf(config(), role(), fmt.Sprintf("Own %s/own", namespace)))
		})

		It("are not known if no version is served", func(ctx SpecContext) {
			define(ctx, "v1")
			own(ctx, "v1")
			run(ctx, "kubectl", "patch", "crd", "owns.owned.test", "--type=json", "-p",
				`[{"op": "replace", "path": "/spec/versions/0/served", "value": false}, `+
					`{"op": "replace", "path": "/spec/versions/1/served", "value": false}]`)
			Eventually(func() error {
				search.Progress = &apply.Progress{}
				_, _, err := attempt(ctx, allAnswered)

				return err
			}).Should(MatchError(ContainSubstring("owns.owned.test cannot be listed yet: none of its versions is served")))
		})
	})
})
