// Package attack tries to break the trust model of docs/security.md: a tenant, a publisher, servers,
// a registry and a remote API server that are all hostile, against the real operator on a real control
// plane. Each attempt prints what was tried and how it was refused, and fails if it had an effect.
//
// With CAPSTAN_BIN set to a folder with the programs of another commit, those are attacked.
package attack

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
)

// concurrency is how many attempts run at the same time. They mostly wait.
const concurrency = "12"

func TestMain(m *testing.M) {
	flag.Parse()

	if err := flag.Set("test.parallel", concurrency); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	os.Exit(m.Run())
}

// attempt is one attack.
type attempt struct {
	// tried says what the attacker does.
	tried string
	// try does it and returns how it was refused. It declares, with arena.never, what would be a
	// success.
	try func(*arena) string
}

func TestAttack(t *testing.T) {
	w := newWorld(t)

	t.Run("honest", func(t *testing.T) { w.runAll(t, honest) })
	t.Run("hostile", func(t *testing.T) {
		w.runAll(t, slices.Concat(
			readAttempts, recordAttempts, plantedAttempts, identityAttempts, remoteAttempts, componentsAttempts,
			chartAttempts, requestAttempts, credentialAttempts, registryAttempts, repositoryAttempts, surfaceAttempts,
			claimAttempts, impostorAttempts, forgedAttempts, besideAttempts, valueAttempts))
	})
	t.Run("exhausting", w.exhaust)
	t.Run("crowds", w.crowd)
	t.Run("nothing happened later", w.expectNothingLater)
}

// runAll runs attempts in parallel and returns when all have ended.
func (w *world) runAll(t *testing.T, attempts []attempt) {
	for _, attempt := range attempts {
		t.Run(attempt.tried, func(t *testing.T) {
			t.Parallel()
			w.run(t, attempt)
		})
	}
}

// run runs one attempt and prints its line.
func (w *world) run(t *testing.T, attempt attempt) {
	a := w.newArena(t)
	answer := ""

	// What has an effect counts even if the operator does not answer, which ends the attempt.
	defer func() {
		a.expectNoEffect()

		switch {
		case t.Failed():
			answer = "it was not: the attempt failed"
		case t.Skipped():
			answer = "it was not tried"
		}

		w.report(attempt.tried, answer)
	}()

	answer = attempt.try(a)
}
