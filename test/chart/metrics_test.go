package chart

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"
)

// alert has the fields of an alert that the tests read.
type alert struct {
	Alert, Expr string
	Annotations map[string]string
}

func alerts() []alert {
	GinkgoHelper()

	var rules struct {
		Groups []struct{ Rules []alert }
	}

	data, err := os.ReadFile(filepath.Join(root, "charts/capstan/files/alerts.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(data, &rules)).To(Succeed())
	Expect(rules.Groups).To(HaveLen(1))

	return rules.Groups[0].Rules
}

// expressions returns the expressions of the alerts and of the dashboard.
func expressions() []string {
	GinkgoHelper()

	var all []string
	for _, alert := range alerts() {
		all = append(all, alert.Expr)
	}

	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}

	data, err := os.ReadFile(filepath.Join(root, "charts/capstan/files/dashboard.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(data, &dashboard)).To(Succeed())

	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}

	Expect(len(all)).To(BeNumerically(">", 20))

	return all
}

// scraped holds the metrics of an operator.
type scraped map[string]*dto.MetricFamily

// scrape reads the metrics with a token.
func scrape(ctx context.Context, address, token string) scraped {
	GinkgoHelper()

	code, page, err := get(ctx, insecure, "https://"+address+"/metrics", token)
	Expect(err).NotTo(HaveOccurred())
	Expect(code).To(Equal(http.StatusOK), page)

	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	Expect(err).NotTo(HaveOccurred())

	return families
}

var (
	metricName   = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b`)
	histogramEnd = regexp.MustCompile(`_(bucket|sum|count)$`)
	quoted       = regexp.MustCompile(`"[^"]*"`)
	byLabels     = regexp.MustCompile(`by \(([^)]*)\)`)
	matchedLabel = regexp.MustCompile(`(\w+)=~?""`)
)

// fromPrometheus are labels that Prometheus adds, and keywords of its language that look like
// metrics.
var fromPrometheus = []string{"job", "pod", "le", "histogram_quantile", "desired_version", "__rate_interval"}

// expectAnswers checks that there is a series for each metric in an expression, with the labels
// that the expression uses.
func (s scraped) expectAnswers(expression string) {
	GinkgoHelper()

	plain := quoted.ReplaceAllString(expression, `""`)
	labels := map[string]bool{}

	for _, match := range metricName.FindAllString(plain, -1) {
		family := histogramEnd.ReplaceAllString(match, "")
		if slices.Contains(fromPrometheus, match) {
			continue
		}

		Expect(s).To(HaveKey(family), "there is no metric %s, which is used in %s", match, expression)

		for _, metric := range s[family].Metric {
			for _, label := range metric.Label {
				labels[label.GetName()] = true
			}
		}
	}

	asked := matchedLabel.FindAllStringSubmatch(plain, -1)
	for _, by := range byLabels.FindAllStringSubmatch(plain, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			asked = append(asked, []string{"", strings.TrimSpace(label)})
		}
	}

	for _, label := range asked {
		if !slices.Contains(fromPrometheus[:3], label[1]) {
			Expect(labels).To(HaveKey(label[1]), "no metric has the label that is asked for in %s", expression)
		}
	}
}

// value returns the value of the only series with the labels; more are pairs of names and values.
func (s scraped) value(name string, labels map[string]string, more ...string) float64 {
	GinkgoHelper()
	Expect(s).To(HaveKey(name))

	var found []float64

	for _, metric := range s[name].Metric {
		have := map[string]string{}
		for _, label := range metric.Label {
			have[label.GetName()] = label.GetValue()
		}

		fits := true
		for key, value := range labels {
			fits = fits && have[key] == value
		}

		for i := 0; i+1 < len(more); i += 2 {
			fits = fits && have[more[i]] == more[i+1]
		}

		if fits {
			found = append(found, metric.GetGauge().GetValue()+metric.GetCounter().GetValue())
		}
	}

	Expect(found).To(HaveLen(1), "%s %v %v", name, labels, more)

	return found[0]
}

var _ = Describe("The documentation", func() {
	read := func(name string) string {
		GinkgoHelper()

		data, err := os.ReadFile(filepath.Join(root, name))
		Expect(err).NotTo(HaveOccurred())

		return string(data)
	}

	It("has a runbook for each alert", func() {
		runbook := read("docs/troubleshooting.md")
		for _, alert := range alerts() {
			Expect(runbook).To(ContainSubstring("\n### " + alert.Alert + "\n"))
			Expect(alert.Annotations).To(HaveKeyWithValue("runbook_url", "RUNBOOK#"+strings.ToLower(alert.Alert)))
			Expect(alert.Annotations).To(And(HaveKey("summary"), HaveKey("description")))
		}
	})

	It("describes each of the operator's metrics", func() {
		page := read("docs/metrics.md")
		code := read("controllers/metrics/metrics.go") + read("controllers/metrics/providers.go")
		names := regexp.MustCompile(`"(capstan_\w+)"`).FindAllStringSubmatch(code, -1)
		Expect(len(names)).To(BeNumerically(">", 8))

		for _, name := range names {
			Expect(page).To(ContainSubstring("`" + name[1] + "`"))
		}
	})
})
