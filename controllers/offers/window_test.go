package offers

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func windowOf(schedule, duration, zone string) v1alpha2.MaintenanceWindow {
	d, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}

	return v1alpha2.MaintenanceWindow{Schedule: schedule, Duration: metav1.Duration{Duration: d}, TimeZone: zone}
}

func TestOpening(t *testing.T) {
	for name, tt := range map[string]struct {
		window              v1alpha2.MaintenanceWindow
		now                 string
		wantFrom, wantUntil string
	}{
		"before": {
			windowOf("0 2 * * *", "2h", ""), "2026-11-22T01:59:59Z", "2026-11-22T02:00:00Z", "2026-11-22T04:00:00Z",
		},
		"from the first moment": {
			windowOf("0 2 * * *", "2h", ""), "2026-11-22T02:00:00Z", "2026-11-22T02:00:00Z", "2026-11-22T04:00:00Z",
		},
		"until the last": {
			windowOf("0 2 * * *", "2h", ""), "2026-11-22T03:59:59Z", "2026-11-22T02:00:00Z", "2026-11-22T04:00:00Z",
		},
		"after": {
			windowOf("0 2 * * *", "2h", ""), "2026-11-22T04:00:00Z", "2026-11-23T02:00:00Z", "2026-11-23T04:00:00Z",
		},
		"a day of the week": {
			windowOf("30 22 * * sat", "4h", ""), "2026-11-22T02:00:00Z", "2026-11-21T22:30:00Z", "2026-11-22T02:30:00Z",
		},
		"the end of the year": {
			windowOf("0 23 31 12 *", "2h", ""), "2027-01-01T00:30:00Z", "2026-12-31T23:00:00Z", "2027-01-01T01:00:00Z",
		},
		"the last day of February": {
			windowOf("0 0 29 2 *", "1h", ""), "2026-11-22T00:00:00Z", "2028-02-29T00:00:00Z", "2028-02-29T01:00:00Z",
		},
		"overlapping windows are one": {
			windowOf("0 1,2 * * *", "90m", ""), "2026-11-22T02:10:00Z", "2026-11-22T01:00:00Z", "2026-11-22T03:30:00Z",
		},
		"adjacent windows are one": {
			windowOf("0 1,2 * * *", "1h", ""), "2026-11-22T02:10:00Z", "2026-11-22T01:00:00Z", "2026-11-22T03:00:00Z",
		},
		"another time zone": {
			windowOf("0 2 * * *", "2h", "Europe/Berlin"), "2026-07-01T00:30:00Z", "2026-07-01T00:00:00Z", "2026-07-01T02:00:00Z",
		},
		"a zone across the date line": {
			windowOf("0 2 * * mon", "1h", "Pacific/Auckland"),
			"2026-07-05T14:10:00Z", "2026-07-05T14:00:00Z", "2026-07-05T15:00:00Z",
		},
		"a time that clocks skip": {
			windowOf("30 2 * * *", "1h", "Europe/Berlin"),
			"2026-03-29T00:50:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z",
		},
		"as long as ever when clocks are put forward": {
			windowOf("0 1 * * *", "2h", "Europe/Berlin"),
			"2026-03-29T01:59:00Z", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z",
		},
		"a time that clocks show twice": {
			windowOf("30 2 * * *", "1h", "Europe/Berlin"),
			"2026-10-25T01:40:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z",
		},
		"and only once": {
			windowOf("30 2 * * *", "30m", "Europe/Berlin"),
			"2026-10-25T00:40:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			window, err := parseWindow(tt.window)
			g.Expect(err).NotTo(HaveOccurred())

			now, err := time.Parse(time.RFC3339, tt.now)
			g.Expect(err).NotTo(HaveOccurred())

			opening := window.Opening(now)
			g.Expect(opening.From.UTC().Format(time.RFC3339)).To(Equal(tt.wantFrom))
			g.Expect(opening.Until.UTC().Format(time.RFC3339)).To(Equal(tt.wantUntil))
		})
	}
}

func TestInvalidWindows(t *testing.T) {
	for name, tt := range map[string]struct {
		window v1alpha2.MaintenanceWindow
		want   string
	}{
		"the zone":          {windowOf("0 2 * * *", "2h", "Europe/Nowhere"), `timeZone "Europe/Nowhere" is not in`},
		"the local zone":    {windowOf("0 2 * * *", "2h", "Local"), "timeZone"},
		"a path":            {windowOf("0 2 * * *", "2h", "../../etc/passwd"), "timeZone"},
		"too short":         {windowOf("0 2 * * *", "59s", ""), "duration must be between 1m and 168h"},
		"too long":          {windowOf("0 2 * * *", "169h", ""), "duration"},
		"four fields":       {windowOf("0 2 * *", "2h", ""), "schedule \"0 2 * *\" is invalid"},
		"seconds":           {windowOf("0 0 2 * * *", "2h", ""), "schedule"},
		"out of range":      {windowOf("60 2 * * *", "2h", ""), "schedule"},
		"backwards":         {windowOf("0 5-2 * * *", "2h", ""), "schedule"},
		"no step":           {windowOf("*/0 2 * * *", "2h", ""), "schedule"},
		"never":             {windowOf("0 0 30 2 *", "2h", ""), "there is no such date"},
		"a descriptor":      {windowOf("@every 1s", "2h", ""), "schedule"},
		"a zone":            {windowOf("TZ=UTC 0 2 * * *", "2h", ""), "schedule"},
		"a zone alone":      {windowOf("TZ=UTC", "2h", ""), "schedule"},
		"nothing":           {windowOf("", "2h", ""), "schedule"},
		"a large number":    {windowOf("99999999999999999999 * * * *", "2h", ""), "schedule"},
		"many of them":      {windowOf(strings.Repeat("1-59/1,", 1000)+"x * * * *", "2h", ""), "schedule"},
		"control character": {windowOf("0 2 * * \x00", "2h", ""), "schedule"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseWindow(tt.window)
			NewWithT(t).Expect(err).To(MatchError(And(
				HavePrefix("spec.upgradePolicy.window."), ContainSubstring(tt.want))))
		})
	}
}

// TestWindowsTakeLittleTime checks the windows that take the most steps: those that open every minute, and those that
// hardly ever do.
func TestWindowsTakeLittleTime(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

	for _, schedule := range []string{"* * * * *", "*/9223372036854775807 * * * *", "0 0 29 2 *", "59 23 31 12 ?"} {
		window, err := parseWindow(windowOf(schedule, "168h", "Europe/Berlin"))
		g.Expect(err).NotTo(HaveOccurred())

		start := time.Now()

		window.Opening(now)

		g.Expect(time.Since(start)).To(BeNumerically("<", 10*time.Second), schedule)
	}
}
