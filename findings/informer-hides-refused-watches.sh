#!/usr/bin/env bash
# What: an informer whose watch is refused with the status 429 tries again for ever, and does not call its watch error
#       handler, so that a program cannot know that its cache is old. API servers answer so while a kind's conversion
#       webhook does not respond. A refusal with another status is told.
# With:  k8s.io/client-go v0.36.4, SharedIndexInformer.
# Guess: SetWatchErrorHandler learns of each watch that fails.
# Seen:  with 429, several watches in six seconds and no call; with 403, a call for each.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat >main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

func refused(err error) string {
	var watches, told atomic.Int64

	source := &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
			watches.Add(1)
			return nil, err
		},
	}

	informer := cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0, cache.Indexers{})
	if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) { told.Add(1) }); err != nil {
		return err.Error()
	}

	stop := make(chan struct{})
	go informer.Run(stop)
	time.Sleep(6 * time.Second)
	close(stop)

	return fmt.Sprintf("several watches: %t, told: %t", watches.Load() > 1, told.Load() > 0)
}

func main() {
	fmt.Println("429:", refused(apierrors.NewTooManyRequests("conversion failed", 1)))
	fmt.Println("403:", refused(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))))
}
GO

export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get k8s.io/client-go@v0.36.4 k8s.io/api@v0.36.4 k8s.io/apimachinery@v0.36.4 >/dev/null 2>&1

expected='429: several watches: true, told: false
403: several watches: true, told: true'

seen=$(go run . 2>/dev/null)
if [ "$seen" != "$expected" ]; then
  printf 'This has changed. Seen now:\n%s\n' "$seen"
  exit 1
fi

echo "still so with client-go v0.36.4"
