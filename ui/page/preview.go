package page

import (
	"net/url"
	"time"

	"github.com/capstan-project/capstan/controllers/facts"
)

// Preview is the page with what an upgrade would change.
type Preview struct {
	Frame
	Changes

	// ID and Label are those of the provider, and Path that of its page.
	ID, Label, Path string
	// From and To are the versions.
	From, To string
	// Age is when the preview was computed; empty if it has not been yet.
	Age string
	// Problem is why there is no preview; empty if it is known or being computed.
	Problem string
	Command string
}

// previewPath returns the path of the preview of an upgrade; empty if there are no previews.
func (f Frame) previewPath(v facts.Provider, version string) string {
	if !f.Previews {
		return ""
	}

	return f.Base + providerPath(v) + "/upgrade?" + url.Values{"to": {version}}.Encode()
}

// NewPreview returns the page about the upgrade of a provider to a version.
func NewPreview(frame Frame, v facts.Provider, version string) *Preview {
	return &Preview{
		Frame:   frame,
		ID:      ID(v.Kind, v.Namespace, v.Name),
		Label:   v.Label,
		Path:    frame.Base + providerPath(v),
		From:    v.Version,
		To:      version,
		Command: command(v, "diff", "--version", version),
	}
}

// SetChanges sets what the upgrade would change, or why that is not known. The time is zero while it is computed.
func (p *Preview) SetChanges(changes Changes, computed time.Time, err error) {
	p.Changes = changes
	p.Age = p.age(computed)

	if err != nil {
		p.Problem = "What the upgrade would change cannot be computed: " + err.Error()
	}
}
