package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

func TestShownServer(t *testing.T) {
	for host, shown := range map[string]string{
		"https://a.example.com:6443":                          "https://a.example.com:6443",
		"https://me:hunter2@a.example.com/k8s/key?key=hunter": "https://a.example.com",
		"a.example.com:8080":                                  "http://a.example.com:8080",
	} {
		NewWithT(t).Expect(shownServer(&rest.Config{Host: host})).To(Equal(shown))
	}
}
