// Package cosign signs manifests in a registry as the cosign program does, for tests.
package cosign

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"
	"oras.land/oras-go/v2"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/test/image"
)

// TypeSignature is the type of a signature's manifest that refers to the signed one.
const TypeSignature = "application/vnd.dev.cosign.artifact.sig.v1+json"

// Key is a key pair.
type Key struct {
	signature.SignerVerifier
	// Public is the public key in PEM.
	Public []byte
}

// NewKey returns a new key pair as `cosign generate-key-pair` creates it.
func NewKey() (Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Key{}, err
	}

	return KeyOf(private)
}

// KeyOf returns the key pair of a private key, with which cosign signs after `cosign import-key-pair`.
func KeyOf(private crypto.Signer) (Key, error) {
	pair, err := signature.LoadDefaultSignerVerifier(private, options.WithED25519ph())
	if err != nil {
		return Key{}, err
	}

	public, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())

	return Key{pair, public}, err
}

// Payload returns the bytes that are signed for a manifest.
func Payload(subject digest.Digest) string {
	return fmt.Sprintf(
		`{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":%q},`+
			`"type":"cosign container image signature"},"optional":null}`,
		subject,
	)
}

// Sign returns a layer with a payload and its signature.
func (k Key) Sign(payload string) (image.Blob, error) {
	signed, err := k.SignMessage(strings.NewReader(payload))
	if err != nil {
		return image.Blob{}, err
	}

	layer := image.NewBlob("application/vnd.dev.cosign.simplesigning.v1+json", []byte(payload))
	layer.Descriptor.Annotations = map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signed),
	}

	return layer, nil
}

// Tag stores a signed payload under the tag for the signed digest, as cosign 1 and 2 do.
func (k Key) Tag(ctx context.Context, c *oci.Client, ref oci.Reference, subject digest.Digest, payload string) error {
	layer, err := k.Sign(payload)
	if err != nil {
		return err
	}

	_, err = image.PushArtifact(ctx, c, ref.WithTag(oci.SignatureTag(subject)), "", layer)

	return err
}

// Referrer is a manifest with one layer that refers to a subject.
type Referrer struct {
	Subject ocispec.Descriptor
	// Type of the manifest, such as TypeSignature.
	Type  string
	Layer image.Blob
}

// Push pushes the manifest to the repository of the reference.
func (r Referrer) Push(ctx context.Context, c *oci.Client, ref oci.Reference) error {
	repository := c.Repository(ref)
	if err := repository.Push(ctx, r.Layer.Descriptor, bytes.NewReader(r.Layer.Data)); err != nil {
		return err
	}

	_, err := oras.PackManifest(ctx, repository, oras.PackManifestVersion1_1, r.Type,
		oras.PackManifestOptions{Subject: &r.Subject, Layers: []ocispec.Descriptor{r.Layer.Descriptor}})

	return err
}
