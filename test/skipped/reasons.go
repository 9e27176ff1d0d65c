package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// reasons are the names of skipped tests, by reason.
type reasons map[string][]string

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
}

// read adds the tests of a file.
func (r reasons) read(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return r.readGinkgo(data)
	}

	return r.readGo(data)
}

func (r reasons) readGinkgo(data []byte) error {
	var reports []types.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return fmt.Errorf("read a report of Ginkgo: %w", err)
	}

	for _, report := range reports {
		for _, spec := range report.SpecReports {
			if reason := reasonOf(spec); reason != "" {
				r[reason] = append(r[reason], spec.FullText())
			}
		}
	}

	return nil
}

// reasonOf returns why a spec did not run, and "" if it ran or was not selected.
func reasonOf(spec types.SpecReport) string {
	switch spec.State {
	case types.SpecStateSkipped:
		return spec.Failure.Message
	case types.SpecStatePending:
		return "pending"
	default:
		return ""
	}
}

// location is where a test was skipped, in front of the reason.
var location = regexp.MustCompile(`^\s+\w+\.go:\d+: `)

func (r reasons) readGo(data []byte) error {
	type test struct{ pkg, name string }

	said := map[test]string{} // the last text of a test, which is the reason if it was skipped

	decoder := json.NewDecoder(bytes.NewReader(data))

	for {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}

		key := test{e.Package, e.Test}

		switch {
		case e.Test == "":
		case e.Action == "output" && location.MatchString(e.Output):
			said[key] = strings.TrimSpace(location.ReplaceAllString(e.Output, ""))
		case e.Action == "skip":
			r[said[key]] = append(r[said[key]], e.Test)
		}
	}
}

// String returns a list of the reasons, each with the number of its tests and the first of them.
func (r reasons) String() string {
	if len(r) == 0 {
		return "No test was skipped.\n"
	}

	var out strings.Builder

	out.WriteString("Skipped tests:\n")

	for _, reason := range slices.Sorted(maps.Keys(r)) {
		tests := r[reason]
		if reason == "" {
			reason = "without a reason"
		}

		fmt.Fprintf(&out, "  %3d  %s\n       such as %s\n", len(tests), reason, tests[0])
	}

	return out.String()
}
