package model

// Defect is a mistake that the operator could make. Walks in a world with a defect show that the oracle
// finds it.
type Defect string

// The defects.
const (
	// WithoutDefect is the operator as it is.
	WithoutDefect Defect = ""
	// ReturnsToPaused takes a paused revision for a healthy one.
	ReturnsToPaused Defect = "returns to a paused revision"
	// ReturnsUnchecked does not check a rollback against what is stored.
	ReturnsUnchecked Defect = "returns to managers that cannot convert what is stored"
	// FailsPruning fails a revision if an object could not be deleted for a passing reason.
	FailsPruning Defect = "fails a revision that could not be pruned"
	// WritesWithoutLease continues an action after the lease was lost.
	WritesWithoutLease Defect = "writes without the lease"
	// HoldsByDigest undoes a user's change once other flags or another Secret give another digest.
	HoldsByDigest Defect = "holds a change only while the digest stays"
	// AppliesEdits applies an edit of the Secret, and other flags, without a request.
	AppliesEdits Defect = "applies edits of inputs without a request"
	// ReportsWantedContract writes the wanted contract into the status.
	ReportsWantedContract Defect = "reports the wanted contract"
	// IgnoresDrift corrects nothing.
	IgnoresDrift Defect = "ignores drift"
	// ForgetsObjects does not delete an object on removal.
	ForgetsObjects Defect = "forgets an object on removal"
	// RetriesForever does not count attempts.
	RetriesForever Defect = "retries forever"
	// GivesUp does not try again after a failure.
	GivesUp Defect = "gives up after a passing error"
	// KeepsDeployed does not mark the revision before as superseded.
	KeepsDeployed Defect = "leaves two revisions deployed"
)
