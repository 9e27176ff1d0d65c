package clusters

// Remotes returns how many remote clusters the pool keeps connections to.
func (p *Pool) Remotes() int {
	p.mu.Lock()
	defer p.mu.Unlock()

	return len(p.remotes)
}
