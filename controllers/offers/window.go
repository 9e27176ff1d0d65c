package offers

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// minDuration and maxDuration bound how long a window is open.
	minDuration = time.Minute
	maxDuration = 7 * 24 * time.Hour
	// maxShift is more than any time zone has ever put its clocks forward or back at once.
	maxShift = 25 * time.Hour
)

// Window is a time that recurs.
type Window struct {
	schedule cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// parseWindow returns the window of a policy. The error is a *problem.Error.
func parseWindow(spec v1alpha2.MaintenanceWindow) (*Window, error) {
	const field = "spec.upgradePolicy.window."

	zone, err := time.LoadLocation(spec.TimeZone)
	if err != nil || spec.TimeZone == "Local" {
		return nil, invalid(field+"timeZone %q is not in the IANA time zone database; use a name such as Europe/Berlin",
			spec.TimeZone)
	}

	if d := spec.Duration.Duration; d < minDuration || d > maxDuration {
		return nil, invalid(field + "duration must be between 1m and 168h, e.g. 2h")
	}

	unusable := func(why any) (*Window, error) {
		return nil, invalid(field+"schedule %q is invalid: %v; it has five fields: minute, hour, day of the month, month "+
			"and day of the week, e.g. 0 2 * * sat", spec.Schedule, why)
	}

	// The parser accepts a time zone in the schedule, which would be another than timeZone.
	if strings.ContainsAny(spec.Schedule, "=@") {
		return unusable("it contains = or @")
	}

	schedule, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(spec.Schedule)
	if err != nil {
		return unusable(err)
	}

	if schedule.Next(leapYear).IsZero() {
		return unusable("there is no such date")
	}

	return &Window{schedule: schedule, duration: spec.Duration.Duration, zone: zone}, nil
}

// leapYear begins a year that has every date.
var leapYear = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Opening returns the opening that includes a time, or the next one. It takes at most as many steps as the longest
// window has minutes.
func (w *Window) Opening(now time.Time) Opening {
	var opening Opening

	// The schedule is about what clocks on the wall show, so that each of its times occurs exactly once.
	for wall := onWall(now.In(w.zone)).Add(-w.duration - maxShift); ; {
		wall = w.schedule.Next(wall)
		if wall.IsZero() {
			return opening // the schedule has nothing in the next five years
		}

		start := w.instant(wall)

		switch {
		case start.After(now) && opening.Includes(now):
			return opening
		case start.After(now):
			return Opening{From: start, Until: start.Add(w.duration)}
		case start.After(opening.Until):
			opening.From = start
		}

		opening.Until = start.Add(w.duration)
	}
}

// onWall returns what a clock on the wall shows, as if it were UTC.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// instant returns when clocks on the wall show a time. If they skip it, that is when they are put forward.
func (w *Window) instant(wall time.Time) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, w.zone)
	before, after := t.ZoneBounds()

	switch shown := onWall(t); {
	case shown.After(wall):
		return before
	case shown.Before(wall):
		return after
	}

	return t
}
