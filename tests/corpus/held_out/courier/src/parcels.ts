import { Pool } from "pg";
import { QueryTypes, Sequelize } from "sequelize";

const pool = new Pool();
const orm = new Sequelize(process.env.COURIER_DB ?? "sqlite::memory:");

export type Status = "waiting" | "moving" | "delivered";

export class Parcels {
  constructor(private readonly table = "parcels") {}

  async one(code: string) {
    return (await pool.query("SELECT * FROM parcels WHERE code = $1", [code])).rows[0];
  }

  async byStreet(street: string) {
    const query = ["SELECT * FROM parcels", "WHERE street = '" + street + "'"].join(" ");
    return (await pool.query(query)).rows;
  }

  async byStatus(status: Status) {
    return orm.query("SELECT * FROM parcels WHERE status = :status", { replacements: { status }, type: QueryTypes.SELECT });
  }

  async byDriver(driver: string) {
    return orm.query(`SELECT * FROM parcels WHERE driver = "${driver}"`, { type: QueryTypes.SELECT });
  }

  async count(): Promise<number> {
    return Number((await pool.query(`SELECT COUNT(*) AS n FROM ${this.table}`)).rows[0].n);
  }
}

export async function findTrip(trips: { find(query: object): Promise<object[]> }, body: any) {
  return trips.find({ $where: `this.driver == '${body.driver}'` });
}
