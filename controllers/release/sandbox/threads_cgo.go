//go:build cgo

package sandbox

// threadStacks is how much of the limit of memory the stacks of threads take, which the C library
// reserves with 8 MiB each, and hardly uses. Release builds do without the C library.
const threadStacks = 96 << 20
