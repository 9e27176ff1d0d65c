// Command program runs in the containers of the real node. "pause" waits, like Kubernetes' pause.
// "manager" becomes ready after a while and serves its probe, like a provider's manager. "fail"
// exits immediately.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		os.Exit(2)
	}

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)

	switch os.Args[1] {
	case "pause":
		<-ended
	case "manager":
		serve(os.Args[2:], ended)
	default:
		fmt.Println("this version cannot start")
		os.Exit(1)
	}
}

func serve(args []string, ended <-chan os.Signal) {
	flags := flag.NewFlagSet("manager", flag.ExitOnError)
	address := flags.String("health-addr", ":9440", "address of /readyz")
	after := flags.Duration("ready-after", 0, "when to be ready")
	_ = flags.Parse(args) // ExitOnError handles the error
	start := time.Now()

	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if time.Since(start) < *after {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})

	server := &http.Server{Addr: *address, ReadHeaderTimeout: time.Second}

	go func() {
		<-ended

		_ = server.Close()
	}()

	fmt.Println(server.ListenAndServe())
}
