package chaos

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/faults"
	"github.com/capstan-project/capstan/test/harness"
)

// leaseNamespace is where the operators elect their leader.
const leaseNamespace = "default"

// election are flags that make the other operator take over within seconds.
var election = []string{
	"--enable-leader-election", "--leader-election-namespace=" + leaseNamespace,
	"--leader-election-lease-duration=4s", "--leader-election-renew-deadline=3s", "--leader-election-retry-period=500ms",
}

// operator is one of two operators. Its requests pass through a proxy, where some of them fail.
type operator struct {
	user    string
	bed     *bed.Bed
	program string
	log     string
	config  string // path of the kubeconfig
	faults  *faults.Faults
	proxy   *http.Server

	running  *harness.Operator
	registry int
	frozen   bool

	// renewed is when the operator last wrote the Lease, in nanoseconds, and writes counts its other
	// writes that took effect.
	renewed, writes atomic.Int64
}

// newOperator returns an operator that does not run yet.
func newOperator(b *bed.Bed, program, folder, user string, seed uint64) (*operator, error) {
	o := &operator{
		user: user, bed: b, program: program, faults: faults.New(seed),
		log: filepath.Join(folder, user+".log"), config: filepath.Join(folder, user+".kubeconfig"),
	}

	config, err := b.ConfigFor(user)
	if err != nil {
		return nil, err
	}

	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, o} })

	o.proxy, err = o.faults.Serve(config, o.config)

	return o, err
}

// counter counts what takes effect.
type counter struct {
	http.RoundTripper
	operator *operator
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(request)
	if err != nil || request.Method == http.MethodGet || response.StatusCode >= http.StatusMultipleChoices {
		return response, err
	}

	switch {
	case strings.Contains(request.URL.Path, "/leases"):
		c.operator.renewed.Store(time.Now().UnixNano())
	case strings.Contains(request.URL.Path, "/events"), strings.HasSuffix(request.URL.Path, "reviews"):
	default:
		c.operator.writes.Add(1)
	}

	return response, err
}

// start starts the operator with its flags.
func (o *operator) start() (err error) {
	flags := election
	if o.registry > 0 {
		flags = append([]string{fmt.Sprintf("--image-registry=registry-%d.example.com", o.registry)}, election...)
	}

	o.frozen = false
	o.running, err = harness.StartOperatorAs(o.bed, o.config, []string{o.program}, o.log, flags...)

	return err
}

// restart kills the operator and starts it again.
func (o *operator) restart() error { return errors.Join(o.running.Kill(), o.start()) }

// revive starts the operator again if it has ended by itself, as a node does.
func (o *operator) revive() error {
	if ended, _ := o.running.Exited(); ended {
		return o.restart()
	}

	return nil
}

func (o *operator) freeze() error {
	o.frozen = true
	return o.running.Freeze()
}

func (o *operator) thaw() error {
	if !o.frozen {
		return nil
	}

	o.frozen = false

	return o.running.Thaw()
}

// stop ends the operator.
func (o *operator) stop() error {
	defer o.proxy.Close()

	return o.running.Kill()
}
