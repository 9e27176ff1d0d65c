package controllers

import (
	"sync"
	"time"

	"github.com/capstan-project/capstan/controllers/object"
)

const (
	// freeCorrections is how often in a row an object is corrected at once. After that somebody
	// else is taken to insist.
	freeCorrections = 5
	// inARow is how soon after the last correction the next one is of the same row.
	inARow = time.Minute
	// shortestTruce is the first wait; each one after it is twice as long, up to longestRetry.
	shortestTruce = 10 * time.Second
)

// corrections remembers how often objects were corrected, so that a program that changes one back
// each time is not fought without end. What it remembers can be lost without harm: a restart begins
// a new row.
type corrections struct {
	mu   sync.Mutex
	rows map[object.Key]row
}

type row struct {
	count int
	last  time.Time
}

// truce is how long after its last correction an object is left alone.
func (r row) truce() time.Duration {
	wait := shortestTruce

	if r.count < freeCorrections {
		return 0
	}

	for range r.count - freeCorrections {
		wait = min(2*wait, longestRetry)
	}

	return wait
}

// next is when an object may be corrected.
func (c *corrections) next(o object.Key) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	r := c.rows[o]

	return r.last.Add(r.truce())
}

// note remembers an attempt to correct an object. One that failed is not repeated at once.
func (c *corrections) note(o object.Key, now time.Time, succeeded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for object, r := range c.rows {
		if now.Sub(r.last) > r.truce()+inARow {
			delete(c.rows, object)
		}
	}

	if c.rows == nil {
		c.rows = map[object.Key]row{}
	}

	count := c.rows[o].count + 1
	if !succeeded {
		count = max(count, freeCorrections)
	}

	c.rows[o] = row{count, now}
}
