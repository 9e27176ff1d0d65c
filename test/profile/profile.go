package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
)

// Names in the tables.
const (
	noSuite      = "(none: compilers and make)"
	testProgram  = "test programs"
	startOf      = "start of " // in front of the name of an API server
	shortProgram = "too short to be seen"
)

// use is what processor time is counted for.
type use struct{ suite, program string }

// process is a process under the command, as it was seen last.
type process struct {
	stat
	use     use
	started bool // whether the control plane of an API server has started

	ended  time.Duration // what was seen of the processor time of its children that have ended, and of theirs
	unseen time.Duration // what was not seen of it, and is counted
}

// total is what is counted of the processor time of a process and of its children that have ended.
func (p *process) total() time.Duration { return p.own + p.ended + p.unseen }

// profile counts the processor time of the processes under a command.
type profile struct {
	root    string // of the module
	command int    // number of the process
	running map[identity]*process
	used    map[use]time.Duration
	count   map[string]int // of processes, by program
}

func newProfile(root string, command int) *profile {
	return &profile{
		root: root, command: command,
		running: map[identity]*process{}, used: map[use]time.Duration{}, count: map[string]int{},
	}
}

// sample counts what was used since the last sample.
func (p *profile) sample() error {
	all, err := processes()
	if err != nil {
		return err
	}

	p.update(all, p.describe)

	return nil
}

// update counts what was used by all processes of the machine since the last update. describe sets what is known of a
// process from elsewhere; it is called for a parent before its children.
func (p *profile) update(all map[int]stat, describe func(now *process, parent use)) {
	ended := p.end(all)

	under := map[int]*process{}
	for _, s := range all {
		p.find(all, under, s, describe)
	}

	for pid, now := range under {
		if now == nil {
			continue
		}

		before := now.stat
		now.stat = all[pid]

		p.used[now.use] += now.own - before.own
		p.countUnseen(now, ended[now.identity])
	}
}

// end removes the processes that have ended, and returns them by their parents.
func (p *profile) end(all map[int]stat) map[identity][]*process {
	running := map[int]*process{} // at the last update
	for id, before := range p.running {
		running[id.pid] = before
	}

	ended := map[identity][]*process{}

	for id, before := range p.running {
		if all[id.pid].identity == id {
			continue
		}

		delete(p.running, id)

		if parent := running[before.parent]; parent != nil {
			ended[parent.identity] = append(ended[parent.identity], before)
		}
	}

	// With its children, which may have ended at the same time.
	var add func(parent *process)

	add = func(parent *process) {
		for _, child := range ended[parent.identity] {
			add(child)
			parent.ended += child.total()
		}
	}

	for _, before := range p.running {
		add(before)
	}

	return ended
}

// find returns a process that runs under the command, and notes it; nil for another one. A process stays under the
// command when its parent ends.
func (p *profile) find(
	all map[int]stat, under map[int]*process, s stat, describe func(now *process, parent use),
) *process {
	if now, ok := under[s.pid]; ok {
		return now
	}

	var parent *process

	if above, ok := all[s.parent]; ok && s.pid != p.command {
		parent = p.find(all, under, above, describe)
	}

	now := p.running[s.identity]
	isNew := now == nil

	if isNew && parent == nil && s.pid != p.command {
		under[s.pid] = nil
		return nil
	}

	if isNew {
		now = &process{stat: stat{identity: s.identity, parent: s.parent}, use: use{suite: noSuite}}
		p.running[s.identity] = now
	}

	inherited := use{suite: now.use.suite}
	if parent != nil {
		inherited = parent.use
	}

	describe(now, inherited)

	if isNew {
		p.count[strings.TrimPrefix(now.use.program, startOf)]++
	}

	under[s.pid] = now

	return now
}

// countUnseen counts what children used that was not seen: the last part of those that have ended now, and others that
// were too short to be seen.
func (p *profile) countUnseen(parent *process, ended []*process) {
	added := parent.children - parent.ended - parent.unseen
	if added <= 0 {
		return // or a child was not waited for
	}

	parent.unseen += added

	if len(ended) == 0 {
		p.used[use{parent.use.suite, shortProgram}] += added
		return
	}

	for _, child := range ended {
		p.used[child.use] += added / time.Duration(len(ended))
	}
}

// describe sets the use of a process. It is asked again, since a process begins as a copy of its parent.
func (p *profile) describe(now *process, parent use) {
	name := program(now.pid)
	if name == "" {
		return
	}

	if strings.HasSuffix(name, ".test") {
		if now.use.program != testProgram {
			now.use = use{suite: p.relative(folder(now.pid)), program: testProgram}
		}

		return
	}

	now.use = use{suite: parent.suite, program: name}

	if name != tools.APIServer || now.started {
		return
	}

	_, err := os.Stat(filepath.Join(folder(now.pid), bed.StartedFile))
	now.started = err == nil

	if !now.started {
		now.use.program = startOf + name
	}
}

// relative returns a path in the module as it is written in its documentation.
func (p *profile) relative(path string) string {
	relative, err := filepath.Rel(p.root, path)
	if err != nil {
		return path
	}

	return relative
}
