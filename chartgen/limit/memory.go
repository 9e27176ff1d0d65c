package limit

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Memory that work on untrusted content takes at most, in bytes.
const (
	// BuildMemory is for building a chart from components within the limits of this package.
	BuildMemory = 200 << 20
	// RenderMemory is for the process that renders a chart.
	RenderMemory = 128 << 20
)

// Content is the memory for all work on untrusted content in this process. A tenant with all that it can have, which is
// a build or two processes that render, leaves enough for a process that renders for another one. With 100 MiB for the
// rest of the operator that is less than the limit of its pod.
var Content = NewMemory(3*RenderMemory, 2*RenderMemory)

// Memory divides an amount of memory among tenants, first come, first served. A tenant that waits for
// memory of its own does not keep others waiting.
type Memory struct {
	total     *semaphore.Weighted
	perTenant int64

	mu      sync.Mutex
	tenants map[string]*tenant
}

// tenant is what one tenant has and waits for.
type tenant struct {
	memory *semaphore.Weighted
	users  int
}

// NewMemory returns a total amount of memory, of which a tenant can have a part at a time.
func NewMemory(total, perTenant int64) *Memory {
	return &Memory{total: semaphore.NewWeighted(total), perTenant: perTenant, tenants: map[string]*tenant{}}
}

// Acquire waits for memory and returns the function that gives it back. The only error is that of the
// context.
func (m *Memory) Acquire(ctx context.Context, name string, size int64) (release func(), err error) {
	t := m.join(name)

	if err := t.memory.Acquire(ctx, size); err != nil {
		m.leave(name)
		return nil, err
	}

	if err := m.total.Acquire(ctx, size); err != nil {
		t.memory.Release(size)
		m.leave(name)

		return nil, err
	}

	return func() {
		m.total.Release(size)
		t.memory.Release(size)
		m.leave(name)
	}, nil
}

func (m *Memory) join(name string) *tenant {
	m.mu.Lock()
	defer m.mu.Unlock()

	t := m.tenants[name]
	if t == nil {
		t = &tenant{memory: semaphore.NewWeighted(m.perTenant)}
		m.tenants[name] = t
	}

	t.users++

	return t
}

// leave forgets a tenant that neither has memory nor waits for any.
func (m *Memory) leave(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	t := m.tenants[name]
	if t.users--; t.users == 0 {
		delete(m.tenants, name)
	}
}
