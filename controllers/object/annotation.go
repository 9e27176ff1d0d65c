package object

// AnnotationError means that an annotation by which an object of a release asks the operator for something is invalid.
// Nothing was done.
type AnnotationError struct{ Reason string }

func (e *AnnotationError) Error() string { return e.Reason }
