//go:build !cgo

package sandbox

// threadStacks is how much of the limit of memory the stacks of threads take: theirs are on the heap.
const threadStacks = 0
