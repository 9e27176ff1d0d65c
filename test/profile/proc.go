package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of times in /proc/PID/stat on all architectures of Go.
const tick = 10 * time.Millisecond

// identity is the identity of a process: the kernel gives its number again once it has ended.
type identity struct {
	pid     int
	started string // in ticks since the machine has started
}

// stat is what /proc/PID/stat says of a process.
type stat struct {
	identity
	parent   int
	own      time.Duration // processor time of the process
	children time.Duration // and of its children that have ended and were waited for, and of theirs
}

// processes returns all processes of the machine, by their number.
func processes() (map[int]stat, error) {
	folders, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}

	if len(folders) == 0 {
		return nil, errors.New("/proc lists no processes; a profile requires Linux")
	}

	all := map[int]stat{}

	for _, file := range folders {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}

		if err != nil {
			return nil, err
		}

		s, err := parseStat(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}

		all[s.pid] = s
	}

	return all, nil
}

// parseStat parses the content of /proc/PID/stat, which proc(5) describes.
func parseStat(data []byte) (stat, error) {
	// The name of the program is in parentheses, and may contain anything.
	begin, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if begin < 0 || end < begin {
		return stat{}, fmt.Errorf("no name of a program in %q", data)
	}

	fields := strings.Fields(string(data[end+1:])) // from the third field, the state
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("too few fields in %q", data)
	}

	var (
		numbers [5]int
		err     error
	)

	for i, field := range []string{fields[1], fields[11], fields[12], fields[13], fields[14]} {
		var failed error

		numbers[i], failed = strconv.Atoi(field)
		err = errors.Join(err, failed)
	}

	pid, failed := strconv.Atoi(strings.TrimSpace(string(data[:begin])))

	return stat{
		identity: identity{pid: pid, started: fields[19]},
		parent:   numbers[0],
		own:      time.Duration(numbers[1]+numbers[2]) * tick,
		children: time.Duration(numbers[3]+numbers[4]) * tick,
	}, errors.Join(err, failed)
}

// program returns the name of the program that a process runs; empty if it has ended.
func program(pid int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}

	return filepath.Base(strings.TrimSuffix(path, " (deleted)"))
}

// folder returns the working folder of a process; empty if it has ended.
func folder(pid int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return ""
	}

	return path
}
