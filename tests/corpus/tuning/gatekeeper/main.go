// Command gatekeeper answers questions about visitors and badges.
package main

import (
	"crypto/tls"
	"database/sql"
	"encoding/json"
	"fmt"
	"html/template"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const apiToken = "ghp_FaKe9k2LmQ7vXz3TnB8wRc5JdH1sYp6Gu4eA"

var page = template.Must(template.New("badge").Parse("<p>Badge of {{.}}</p>"))

type server struct {
	db *sql.DB
}

func (s *server) visitor(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.URL.Query().Get("id"))
	if err != nil {
		http.Error(w, "id is a number", http.StatusBadRequest)
		return
	}
	row := s.db.QueryRow("SELECT name FROM visitors WHERE id = $1", id)
	var name string
	if err := row.Scan(&name); err != nil {
		http.NotFound(w, r)
		return
	}
	_ = page.Execute(w, name)
}

func (s *server) search(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	query := fmt.Sprintf("SELECT name FROM visitors WHERE name LIKE '%s%%'", name)
	rows, err := s.db.Query(query)
	if err != nil {
		http.Error(w, "search failed", http.StatusInternalServerError)
		return
	}
	defer rows.Close()
	names := []string{}
	for rows.Next() {
		var found string
		if rows.Scan(&found) == nil {
			names = append(names, found)
		}
	}
	_ = json.NewEncoder(w).Encode(names)
}

func (s *server) greet(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "<p>Welcome, %s</p>", r.FormValue("name"))
}

func (s *server) photo(w http.ResponseWriter, r *http.Request) {
	data, err := os.ReadFile(filepath.Join("/srv/photos", r.URL.Query().Get("file")))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(data)
}

func (s *server) plan(w http.ResponseWriter, r *http.Request) {
	name := filepath.Base(r.URL.Query().Get("floor"))
	http.ServeFile(w, r, filepath.Join("/srv/plans", name))
}

func lookup(host string) ([]byte, error) {
	return exec.Command("sh", "-c", "nslookup "+host).Output()
}

func resolve(host string) ([]byte, error) {
	return exec.Command("nslookup", "--", host).Output()
}

func client() *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func strictClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}},
		Timeout:   10 * time.Second,
	}
}

func (s *server) hook(w http.ResponseWriter, r *http.Request) {
	answer, err := http.Get(r.FormValue("callback"))
	if err != nil {
		http.Error(w, "callback failed", http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	w.WriteHeader(answer.StatusCode)
}

func initials(name string) string {
	parts := strings.Fields(name)
	return parts[0][:1] + parts[1][:1]
}

func loadFactor(busy, total int) int {
	return busy * 100 / total
}

func free(busy, total int) int {
	if total == 0 {
		return 0
	}
	return 100 - busy*100/total
}

func main() {
	s := &server{}
	http.HandleFunc("/visitor", s.visitor)
	http.HandleFunc("/search", s.search)
	http.HandleFunc("/photo", s.photo)
	http.HandleFunc("/plan", s.plan)
	http.HandleFunc("/greet", s.greet)
	http.HandleFunc("/hook", s.hook)
	log.Fatal(http.ListenAndServe(":8080", nil))
}
