package main

import (
	"encoding/json"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

const events = `{"Action":"run","Package":"a","Test":"TestOne"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"    one_test.go:3: there is no browser\n"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"--- SKIP: TestOne (0.00s)\n"}
{"Action":"skip","Package":"a","Test":"TestOne","Elapsed":0}
{"Action":"output","Package":"b","Test":"TestOne","Output":"    one_test.go:3: a message\n"}
{"Action":"pass","Package":"b","Test":"TestOne"}
{"Action":"skip","Package":"b","Test":"TestTwo"}
{"Action":"skip","Package":"c"}
`

func spec(text string, state types.SpecState, reason string) types.SpecReport {
	return types.SpecReport{LeafNodeText: text, State: state, Failure: types.Failure{Message: reason}}
}

func TestReasons(t *testing.T) {
	g := NewWithT(t)

	report, err := json.Marshal([]types.Report{{SpecReports: types.SpecReports{
		spec("uses a browser", types.SpecStateSkipped, "there is no browser"),
		spec("works", types.SpecStatePassed, ""),
		spec("was not selected", types.SpecStateSkipped, ""),
		spec("works one day", types.SpecStatePending, ""),
	}}})
	g.Expect(err).NotTo(HaveOccurred())

	skips := reasons{}
	g.Expect(skips.read([]byte(events))).To(Succeed())
	g.Expect(skips.read(report)).To(Succeed())
	g.Expect(skips.String()).To(Equal(`Skipped tests:
    1  without a reason
       such as TestTwo
    1  pending
       such as works one day
    2  there is no browser
       such as TestOne
`))

	g.Expect(reasons{}.String()).To(Equal("No test was skipped.\n"))
	g.Expect(skips.read([]byte("ok a 0.1s"))).To(MatchError(ContainSubstring("read the output of go test")))
	g.Expect(skips.read([]byte("[{"))).To(MatchError(ContainSubstring("read a report of Ginkgo")))
}
