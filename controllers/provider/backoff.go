package provider

import (
	"time"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	// freeCorrections is how many times in a row an object is corrected at once. After that another
	// program is assumed to change it back each time.
	freeCorrections = 5
	// sameSeries is how soon after the last correction the next one continues its series.
	sameSeries = time.Minute
	// minDelay is the first delay.
	minDelay = 10 * time.Second
)

// backoff remembers how often the objects of a resource were corrected, so that a program that keeps changing one back
// is not fought without end. It may be lost without harm: a restart begins new series. Its zero value
// is ready for use, by one goroutine at a time.
type backoff struct {
	series map[object.Key]series
}

// series is a row of corrections of one object.
type series struct {
	count int
	last  time.Time
}

// delay returns how long after its last correction an object is left alone.
func (s series) delay() time.Duration {
	if s.count < freeCorrections {
		return 0
	}

	return state.Backoff(minDelay, s.count-freeCorrections+1)
}

// next returns when an object may be corrected.
func (b *backoff) next(o object.Key) time.Time {
	s := b.series[o]

	return s.last.Add(s.delay())
}

// record notes an attempt to correct an object. A failed attempt is not repeated at once.
func (b *backoff) record(o object.Key, now time.Time, succeeded bool) {
	for key, s := range b.series {
		if now.Sub(s.last) > s.delay()+sameSeries {
			delete(b.series, key)
		}
	}

	if b.series == nil {
		b.series = map[object.Key]series{}
	}

	count := b.series[o].count + 1
	if !succeeded {
		count = max(count, freeCorrections)
	}

	b.series[o] = series{count, now}
}
