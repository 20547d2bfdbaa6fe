-- Databases made for this project, in the form in which mysqldump writes them.

CREATE DATABASE IF NOT EXISTS `ferries`;
USE `ferries`;
CREATE TABLE `harbour` (
  `harbour_id` int NOT NULL AUTO_INCREMENT,
  `name` text COLLATE utf8mb4_general_ci,
  `island` varchar(40) COLLATE utf8mb4_general_ci DEFAULT NULL,
  `berths` int DEFAULT NULL,
  PRIMARY KEY (`harbour_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `harbour` VALUES (1,'Lunna','Aldra',4),(2,'Skerry','Aldra',2),(3,'Tarn','Bresk',6),(4,'Oddwick','Bresk',3),(5,'Sunna','Corr',5);
CREATE TABLE `ship` (
  `ship_id` int NOT NULL AUTO_INCREMENT,
  `name` text COLLATE utf8mb4_general_ci,
  `built` int DEFAULT NULL,
  `seats` int DEFAULT NULL,
  `home_harbour` int DEFAULT NULL,
  PRIMARY KEY (`ship_id`),
  KEY `home` (`home_harbour`),
  CONSTRAINT `home_fk` FOREIGN KEY (`home_harbour`) REFERENCES `harbour` (`harbour_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `ship` VALUES (1,'Gull',1998,120,1),(2,'Petrel',2006,300,3),(3,'Tern',2011,80,2),(4,'Skua',2006,240,3),(5,'Eider',2019,410,5),(6,'Auk',1987,60,4);
CREATE TABLE `crossing` (
  `crossing_id` int NOT NULL AUTO_INCREMENT,
  `ship_id` int NOT NULL,
  `from_harbour` int NOT NULL,
  `to_harbour` int NOT NULL,
  `minutes` int DEFAULT NULL,
  `passengers` int DEFAULT NULL,
  `day` date DEFAULT NULL,
  PRIMARY KEY (`crossing_id`),
  KEY `ship_key` (`ship_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `crossing` VALUES (1,1,1,3,95,64,'2024-05-01'),(2,1,3,1,98,71,'2024-05-01'),(3,2,3,5,150,233,'2024-05-01'),(4,3,2,1,25,40,'2024-05-02'),(5,2,5,3,155,180,'2024-05-02'),(6,4,3,4,35,120,'2024-05-02'),(7,5,5,1,210,398,'2024-05-03'),(8,1,1,3,97,15,'2024-05-03'),(9,4,4,3,36,99,'2024-05-03');

CREATE DATABASE IF NOT EXISTS `library`;
USE `library`;
CREATE TABLE `author` (
  `author_id` int NOT NULL AUTO_INCREMENT,
  `name` text COLLATE utf8mb4_general_ci,
  `country` varchar(40) COLLATE utf8mb4_general_ci DEFAULT NULL,
  `born` int DEFAULT NULL,
  PRIMARY KEY (`author_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `author` VALUES (1,'Ida Morn','Norway',1931),(2,'Paul Okoro','Nigeria',1958),(3,'Lena Voss','Germany',1972),(4,'Amara Diallo','Mali',1985),(5,'Jon O\'Shea','Ireland',1944);
CREATE TABLE `book` (
  `book_id` int NOT NULL AUTO_INCREMENT,
  `title` text COLLATE utf8mb4_general_ci,
  `author_id` int DEFAULT NULL,
  `year` int DEFAULT NULL,
  `pages` int DEFAULT NULL,
  `genre` varchar(20) COLLATE utf8mb4_general_ci DEFAULT NULL,
  PRIMARY KEY (`book_id`),
  KEY `written_by` (`author_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `book` VALUES (1,'The Salt Road',1,1966,312,'novel'),(2,'Winter Bees',1,1979,188,'poems'),(3,'Night Market',2,1990,402,'novel'),(4,'Rivers of Dust',2,2003,276,'history'),(5,'Glass Hours',3,2010,350,'novel'),(6,'The Quiet Grid',3,2018,220,'essay'),(7,'A Drum for Mother',4,2015,144,'poems'),(8,'Peat',5,1983,301,'novel'),(9,'Tides',5,1999,95,'poems');
CREATE TABLE `reader` (
  `reader_id` int NOT NULL AUTO_INCREMENT,
  `name` text COLLATE utf8mb4_general_ci,
  `town` varchar(40) COLLATE utf8mb4_general_ci DEFAULT NULL,
  `age` int DEFAULT NULL,
  PRIMARY KEY (`reader_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `reader` VALUES (1,'Mia','Farley',34),(2,'Tom','Farley',71),(3,'Ravi','Westhope',19),(4,'Chloe','Westhope',45),(5,'Ben','Nook',12);
CREATE TABLE `loan` (
  `loan_id` int NOT NULL AUTO_INCREMENT,
  `book_id` int NOT NULL,
  `reader_id` int NOT NULL,
  `days` int DEFAULT NULL,
  `late` int DEFAULT NULL,
  PRIMARY KEY (`loan_id`),
  KEY `of_book` (`book_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `loan` VALUES (1,1,1,14,0),(2,3,1,30,1),(3,5,2,21,0),(4,1,3,10,0),(5,7,3,7,0),(6,8,4,35,1),(7,3,4,28,0),(8,2,2,12,0),(9,1,4,40,1);

CREATE DATABASE IF NOT EXISTS `bakery`;
USE `bakery`;
CREATE TABLE `product` (
  `product_id` int NOT NULL AUTO_INCREMENT,
  `name` text COLLATE utf8mb4_general_ci,
  `kind` varchar(20) COLLATE utf8mb4_general_ci DEFAULT NULL,
  `price` double DEFAULT NULL,
  PRIMARY KEY (`product_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `product` VALUES (1,'Rye loaf','bread',4.5),(2,'Walnut loaf','bread',5.25),(3,'Plain roll','roll',0.6),(4,'Poppy roll','roll',0.75),(5,'Plum cake','cake',18),(6,'Lemon tart','cake',14.5),(7,'Oat biscuit','biscuit',1.2);
CREATE TABLE `shop` (
  `shop_id` int NOT NULL AUTO_INCREMENT,
  `street` text COLLATE utf8mb4_general_ci,
  `opened` int DEFAULT NULL,
  `staff` int DEFAULT NULL,
  PRIMARY KEY (`shop_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `shop` VALUES (1,'Mill Lane',1996,5),(2,'Station Road',2008,9),(3,'Harbour Street',2021,3);
CREATE TABLE `sale` (
  `sale_id` int NOT NULL AUTO_INCREMENT,
  `shop_id` int NOT NULL,
  `product_id` int NOT NULL,
  `number` int DEFAULT NULL,
  `weekday` varchar(10) COLLATE utf8mb4_general_ci DEFAULT NULL,
  PRIMARY KEY (`sale_id`),
  KEY `in_shop` (`shop_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `sale` VALUES (1,1,1,12,'Monday'),(2,1,3,80,'Monday'),(3,2,3,140,'Monday'),(4,2,5,2,'Saturday'),(5,2,1,20,'Saturday'),(6,1,4,55,'Saturday'),(7,3,6,4,'Sunday'),(8,3,3,30,'Sunday'),(9,2,6,3,'Sunday'),(10,1,2,7,'Tuesday');
