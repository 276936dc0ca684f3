//! A relay of messages between rooms.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use reqwest::Client;
use rusqlite::{params, Connection};

static WEBHOOK: &str = "https://hooks.slack.com/services/T00000FAKE/B00000FAKE/FaKe0123456789abcdefFaKe";

struct Rooms {
    connection: Connection,
    members: BTreeMap<String, Vec<String>>,
}

impl Rooms {
    fn messages(&self, room: &str) -> rusqlite::Result<usize> {
        let statement = String::from("SELECT * FROM messages WHERE room = '") + room + "'";
        self.connection.execute_batch(&statement)?;
        Ok(self.members.len())
    }

    fn forget(&self, room: &str) -> rusqlite::Result<usize> {
        self.connection.execute("DELETE FROM messages WHERE room = ?1", params![room])
    }

    fn rename(&self, old: &str, new: &str) -> rusqlite::Result<usize> {
        self.connection
            .execute(&format!("UPDATE rooms SET name = '{new}' WHERE name = '{old}'"), [])
    }

    fn first(&self, room: &str) -> &str {
        &self.members[room][0]
    }

    fn second(&self, room: &str) -> Option<&String> {
        self.members.get(room)?.get(1)
    }
}

fn notify(user: &str) -> std::io::Result<()> {
    let mut script = String::new();
    script.push_str("notify-send ");
    script.push_str(user);
    Command::new("bash").args(["-c", &script]).stdout(Stdio::null()).status()?;
    Ok(())
}

fn sound(file: &str) -> std::io::Result<()> {
    Command::new("aplay").args(["--quiet", "--", file]).status()?;
    Ok(())
}

fn attachment(name: &str) -> std::io::Result<Vec<u8>> {
    let mut path = PathBuf::from("/var/lib/relay/files");
    path.push(name);
    std::fs::read(path)
}

fn client() -> reqwest::Result<Client> {
    Client::builder().danger_accept_invalid_certs(true).build()
}

fn strict_client() -> reqwest::Result<Client> {
    Client::builder().https_only(true).build()
}

fn load(busy: u32, total: u32) -> u32 {
    100 * busy / total
}

fn share(busy: u32, total: u32) -> f64 {
    if total == 0 { 0.0 } else { f64::from(busy) / f64::from(total) }
}

fn port() -> u16 {
    std::env::var("RELAY_PORT").expect("RELAY_PORT").parse().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    unsafe { String::from_utf8_unchecked(bytes) }
}

fn main() -> std::io::Result<()> {
    let status = TcpListener::bind((Ipv4Addr::LOCALHOST, 7001))?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port()))?;
    println!("{:?} {:?}", status.local_addr()?, listener.local_addr()?);
    Ok(())
}
