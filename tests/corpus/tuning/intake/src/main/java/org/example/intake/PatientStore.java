package org.example.intake;

import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Random;
import javax.crypto.Cipher;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;

/** Stores patients. */
public class PatientStore {
  private final Connection connection;
  private final SecureRandom random = new SecureRandom();

  public PatientStore(Connection connection) {
    this.connection = connection;
  }

  public ResultSet byId(long id) throws SQLException {
    PreparedStatement statement = connection.prepareStatement("SELECT * FROM patients WHERE id = ?");
    statement.setLong(1, id);
    return statement.executeQuery();
  }

  public ResultSet byName(String name) throws SQLException {
    Statement statement = connection.createStatement();
    return statement.executeQuery("SELECT * FROM patients WHERE name = '" + name + "'");
  }

  public Object restore(InputStream stream) throws IOException, ClassNotFoundException {
    return new ObjectInputStream(stream).readObject();
  }

  public Document parse(InputStream stream) throws Exception {
    DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
    return factory.newDocumentBuilder().parse(stream);
  }

  public Document parseStrict(InputStream stream) throws Exception {
    DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
    factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
    return factory.newDocumentBuilder().parse(stream);
  }

  public Cipher cipher() throws Exception {
    return Cipher.getInstance("AES/ECB/PKCS5Padding");
  }

  public Cipher sealed() throws Exception {
    return Cipher.getInstance("AES/GCM/NoPadding");
  }

  public byte[] digest(byte[] secret) throws NoSuchAlgorithmException {
    return MessageDigest.getInstance("MD5").digest(secret);
  }

  public String accessCode() {
    return Integer.toString(new Random().nextInt(1_000_000));
  }

  public byte[] nonce() {
    byte[] bytes = new byte[12];
    random.nextBytes(bytes);
    return bytes;
  }

  public boolean sameWard(String first, String second) {
    return first == second;
  }

  public boolean sameName(String first, String second) {
    return first.equals(second);
  }

  public void print(String printer, String file) throws IOException {
    Runtime.getRuntime().exec(new String[] {"sh", "-c", "lp -d " + printer + " " + file});
  }
}
