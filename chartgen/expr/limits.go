package expr

import (
	"iter"

	"github.com/drone/envsubst/v2/parse"
)

// Limits of a text. Real components have at most 20 expressions of 60 bytes each, and 70 escaped
// dollar signs. The time to parse a text is proportional to its size only within these limits:
// drone/envsubst's parser copies the text at each escaped character.
const (
	// maxExpression is the maximum size of an expression in bytes, with those nested in it.
	maxExpression = 16 << 10
	// maxNesting is the maximum depth of expressions in expressions.
	maxNesting = 32
	// maxExpressions is the maximum number of expressions, counting the nested ones.
	maxExpressions = 10000
	// maxExpressionBytes is the maximum size of all expressions.
	maxExpressionBytes = 1 << 20
	// maxSegments is the maximum number of expressions and pieces of text between them and "$$".
	maxSegments = 100000
	// maxRetries limits how often the search for the end of an expression may be mistaken.
	maxRetries = 64
)

// count returns the number of expressions in an expression, including itself.
func count(fn *parse.FuncNode) int {
	total := 1

	for nested := range children(fn) {
		total += count(nested)
	}

	return total
}

// depth returns the number of levels of an expression: 1 if no other is nested in it.
func depth(fn *parse.FuncNode) int {
	deepest := 0

	for nested := range children(fn) {
		deepest = max(deepest, depth(nested))
	}

	return deepest + 1
}

// children iterates over the expressions that are arguments of an expression.
func children(fn *parse.FuncNode) iter.Seq[*parse.FuncNode] {
	return func(yield func(*parse.FuncNode) bool) {
		for _, arg := range fn.Args {
			if nested, ok := arg.(*parse.FuncNode); ok && !yield(nested) {
				return
			}
		}
	}
}
