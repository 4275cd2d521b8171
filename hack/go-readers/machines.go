package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
	ignition "github.com/coreos/ignition/v2/config"
)

// unitOf is a unit file as Ignition reads it before it writes it: its sections that have options.
func unitOf(data []byte) ([]string, error) {
	options, err := unit.Deserialize(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	sections := []string{}
	seen := map[string]bool{}
	for _, option := range options {
		if !seen[option.Section] {
			sections = append(sections, option.Section)
		}
		seen[option.Section] = true
	}
	return sections, nil
}

// ignitionOf is a configuration as Ignition reads, checks and brings it to its newest version.
func ignitionOf(data []byte) (json.RawMessage, error) {
	config, report, err := ignition.Parse(data)
	if err != nil {
		return nil, errors.New(strings.TrimSpace(err.Error() + ": " + report.String()))
	}
	return json.Marshal(config)
}
