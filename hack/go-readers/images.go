package main

import (
	"encoding/json"
	"errors"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

type imageReference struct {
	Name   string `json:"name"`
	Tag    string `json:"tag"`
	Digest string `json:"digest"`
}

// imageReferenceOf fills in defaults, as container engines do.
func imageReferenceOf(text string) (*imageReference, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return nil, err
	}
	result := imageReference{Name: named.Name()}
	if tagged, ok := named.(reference.Tagged); ok {
		result.Tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		result.Digest = digested.Digest().String()
	}
	return &result, nil
}

// imageOf is a manifest or an index, by the types of the image specification, with its digests checked.
func imageOf(data []byte) (json.RawMessage, error) {
	var index struct {
		specs.Index
		Layers []specs.Descriptor `json:"layers"`
		Config specs.Descriptor   `json:"config"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, err
	}
	if index.SchemaVersion != 2 {
		return nil, errors.New("it is not of schema version 2")
	}
	check := func(descriptors ...specs.Descriptor) error {
		for _, one := range descriptors {
			if err := one.Digest.Validate(); err != nil {
				return err
			}
			if one.Digest.Algorithm() != digest.SHA256 || one.Size < 0 {
				return errors.New("a descriptor is not usable")
			}
		}
		return nil
	}
	if index.Manifests != nil {
		if err := check(index.Manifests...); err != nil {
			return nil, err
		}
	} else if err := check(append([]specs.Descriptor{index.Config}, index.Layers...)...); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"mediaType": index.MediaType, "manifests": index.Manifests, "config": index.Config, "layers": index.Layers,
	})
}
